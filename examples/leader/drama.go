package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// term is the time of one leader.
type term struct {
	who   string
	token int64
	from  time.Time
	to    time.Time // of the last line
	lines int       // acknowledged
	end   string
}

// drama is the run as it is seen from outside.
type drama struct {
	crew    *crew.Crew[event]
	to      ledger
	out     io.Writer
	began   time.Time
	stop    func()
	terms   []*term
	paused  *term // which was paused, until it finds out that its lock is lost
	resumed bool
	killed  string
	late    int // writes that the ledger refused
	over    bool
}

// linesEach is how often a leader writes before it is disturbed.
const linesEach = 8

// hear notes what a candidate said.
func (d *drama) hear(e event) {
	switch e.Kind {
	case elected:
		d.say(e.Who, e.At, "leads with token %d", e.Token)
		d.terms = append(d.terms, &term{who: e.Who, token: e.Token, from: e.At, to: e.At})
	case refused:
		d.late++
		d.say(e.Who, e.At, "wrote late with token %d: %s", e.Token, e.Error)
	case lost:
		d.say(e.Who, e.At, "finds out: %s", e.Error)
	case wrote:
		for _, t := range d.terms {
			if t.token == e.Token {
				t.lines, t.to = t.lines+1, e.At
			}
		}
	}
}

func (d *drama) say(who string, at time.Time, format string, args ...any) {
	fmt.Fprintf(d.out, "%6.2f s  %s  %s\n", at.Sub(d.began).Seconds(), who, fmt.Sprintf(format, args...))
}

func (d *drama) report(err error) {
	if err != nil {
		fmt.Fprintln(d.out, "          ", err)
	}
}

// conclude prints the terms and the verdict.
func (d *drama) conclude(entries []entry) error {
	w := tabwriter.NewWriter(d.out, 2, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nleader\ttoken\tfrom\tlines\tuntil the next\tend\t")
	for i, t := range d.terms {
		gap := ""
		if i+1 < len(d.terms) {
			gap = fmt.Sprintf("%.0f ms", 1e3*d.terms[i+1].from.Sub(t.to).Seconds())
		}
		fmt.Fprintf(w, "%s\t%d\t%.2f s\t%d\t%s\t%s\t\n", t.who, t.token, t.from.Sub(d.began).Seconds(), t.lines, gap, t.end)
	}
	_ = w.Flush()
	faults := d.faults(entries)
	for _, f := range faults {
		fmt.Fprintln(d.out, "  WRONG", f)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d things are wrong", len(faults))
	}
	fmt.Fprintf(d.out, "\n%d leaders one after the other, %d lines in the order of their tokens, late writes refused: %d\n", len(d.terms), len(entries), d.late)
	return nil
}

// faults are what must not be.
func (d *drama) faults(entries []entry) []string {
	faults := append(verify(entries), acknowledged(entries, d.terms)...)
	switch {
	case !d.over:
		faults = append(faults, fmt.Sprintf("the demonstration did not come to its end; candidates ended so: %v", d.crew.Errs()))
	case crew.CanPause && d.late == 0:
		faults = append(faults, "no late write was refused")
	}
	return faults
}

// acknowledged compares the ledger with what leaders said that they had
// written: no term may miss a line, and no line may be of a token that nobody
// led with. Who is killed may have written more than it said.
func acknowledged(entries []entry, terms []*term) (faults []string) {
	lines := map[entry]int{}
	for _, e := range entries {
		lines[e]++
	}
	last := int64(0)
	for _, t := range terms {
		if t.token <= last {
			faults = append(faults, fmt.Sprintf("%s leads with token %d after %d", t.who, t.token, last))
		}
		last = t.token
		e := entry{t.token, t.who}
		if lines[e] < t.lines {
			faults = append(faults, fmt.Sprintf("%s has written %d lines with token %d, the ledger has %d", t.who, t.lines, t.token, lines[e]))
		}
		delete(lines, e)
	}
	for e, n := range lines {
		faults = append(faults, fmt.Sprintf("%d lines of %s with token %d, with which it did not lead", n, e.who, e.token))
	}
	return faults
}
