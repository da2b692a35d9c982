package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// demonstrate runs the candidates, disturbs them, and verifies the ledger.
func demonstrate(ctx context.Context, s settings, out, errs io.Writer) error {
	engine, err := localdb.Start(ctx, localdb.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	prefix := "dynahold-leader-" + rand.Text()[:8]
	if err := prepare(ctx, engine.Client(), prefix); err != nil {
		return err
	}
	defer func() {
		for _, name := range []string{prefix + "-locks", prefix + "-ledger"} {
			_, err := engine.Client().DeleteTable(context.WithoutCancel(ctx), &dynamodb.DeleteTableInput{TableName: &name})
			if err != nil {
				fmt.Fprintln(errs, "leader: a table stays behind:", err)
			}
		}
	}()
	fmt.Fprintf(out, "%d candidates, lease %v\n\n", s.candidates, s.lease)
	running, stop := context.WithCancel(ctx)
	defer stop()
	c, err := start(running, s, prefix, engine.Endpoint())
	if err != nil {
		return err
	}
	d := &drama{crew: c, out: out, began: time.Now(), stop: stop}
	deadline := time.AfterFunc(30*time.Second+10*s.lease, func() { stop() })
	defer deadline.Stop()
	for e := range c.heard {
		d.hear(e)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	entries, err := ledger{engine.Client(), prefix + "-ledger"}.read(ctx)
	if err != nil {
		return err
	}
	return d.conclude(entries)
}

func prepare(ctx context.Context, client *dynamodb.Client, prefix string) error {
	locks, err := mutex.New(client, prefix+"-locks", mutex.Config{})
	if err != nil {
		return err
	}
	book, err := repo.NewKeyTable(client, prefix+"-ledger", repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}, repo.TableConfig{})
	if err != nil {
		return err
	}
	return errors.Join(locks.EnsureTable(ctx), book.EnsureTable(ctx))
}

// term is the time of one leader.
type term struct {
	who   string
	token int64
	from  time.Time
	to    time.Time
	lines int
	end   string
}

// drama is the run as it is seen from outside.
type drama struct {
	crew    *crew
	out     io.Writer
	began   time.Time
	stop    func()
	terms   []*term
	paused  string // who is paused, or was and has not found out yet
	resumed bool   // it goes on
	late    int    // writes that the ledger refused
	killed  string
	over    bool
}

// linesEach is how often a leader writes before it is disturbed.
const linesEach = 8

// hear follows the candidates, and disturbs them at the right moments.
func (d *drama) hear(e event) {
	switch e.Kind {
	case elected:
		d.say(e, "leads with token %d", e.Token)
		d.terms = append(d.terms, &term{who: e.Who, token: e.Token, from: e.At, to: e.At})
	case refused:
		d.late++
		d.say(e, "wrote late with token %d: %s", e.Token, e.Error)
	case lost:
		d.say(e, "finds out: %s", e.Error)
		if e.Who == d.paused && d.late == 0 {
			// It stood still at a place where it looked at its lock first. The next
			// one is paused, until one writes late.
			d.paused, d.resumed = "", false
		}
	case wrote:
		for _, t := range d.terms {
			if t.token == e.Token {
				t.lines, t.to = t.lines+1, e.At
			}
		}
	}
	d.disturb(e)
}

// disturb does what is due after an event of the present leader.
func (d *drama) disturb(e event) {
	if len(d.terms) == 0 || d.over {
		return
	}
	now := d.terms[len(d.terms)-1]
	leading := e.Kind == wrote && e.Who == now.who && now.lines >= linesEach
	proc := d.crew.procs[now.who].Process
	switch {
	case leading && canPause && d.late == 0 && d.paused == "":
		d.paused, now.end = now.who, "paused past its lease"
		d.say(e, "is paused (SIGSTOP)")
		d.report(pause(proc))
	case leading && d.paused != "" && d.paused != now.who && !d.resumed:
		d.resumed = true
		d.say(event{Who: d.paused, At: time.Now()}, "goes on (SIGCONT), and does not know yet")
		d.report(resume(d.crew.procs[d.paused].Process))
	case leading && d.killed == "" && (!canPause || d.late > 0):
		d.killed, now.end = now.who, "killed"
		d.say(e, "is killed (SIGKILL)")
		d.report(proc.Kill())
	case leading && d.killed != "" && now.who != d.killed:
		d.over, now.end = true, "end of the demonstration"
		d.stop()
	}
}

func (d *drama) say(e event, format string, args ...any) {
	fmt.Fprintf(d.out, "%6.2f s  %s  %s\n", e.At.Sub(d.began).Seconds(), e.Who, fmt.Sprintf(format, args...))
}

func (d *drama) report(err error) {
	if err != nil {
		fmt.Fprintln(d.out, "          ", err)
	}
}

// conclude prints the terms and verifies the ledger.
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
	faults := verify(entries)
	written := 0
	for _, t := range d.terms {
		written += t.lines
	}
	switch {
	case !d.over:
		faults = append(faults, fmt.Sprintf("the demonstration did not come to its end; candidates ended so: %v", d.crew.ends))
	case canPause && d.late == 0:
		faults = append(faults, "no late write was refused")
	}
	if len(entries) < written { // a killed leader may have written a line more than it said
		faults = append(faults, fmt.Sprintf("%d lines were acknowledged, the ledger has %d", written, len(entries)))
	}
	for _, f := range faults {
		fmt.Fprintln(d.out, "  WRONG", f)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d things are wrong", len(faults))
	}
	fmt.Fprintf(d.out, "\n%d leaders one after the other, %d lines in the order of their tokens, %d late write refused\n", len(d.terms), len(entries), d.late)
	return nil
}
