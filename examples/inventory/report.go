package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dynahold/dynahold/examples/internal/report"
)

// console is where the program reports: results on out, progress and faults on
// err.
type console struct {
	out, err io.Writer
	quiet    bool
}

const (
	shownLines  = 20 // malformed lines that are reported one by one
	shownFaults = 5  // faults of a check
)

func reportMalformed(w io.Writer, in *input) {
	for i, bad := range in.malformed {
		if i == shownLines {
			fmt.Fprintf(w, "... and %d more\n", len(in.malformed)-i)
			return
		}
		fmt.Fprintf(w, "line %d skipped: %s\n", bad.number, strings.ReplaceAll(bad.err.Error(), "\n", "; "))
	}
}

func (c console) printf(format string, args ...any) {
	if !c.quiet {
		fmt.Fprintf(c.out, format, args...)
	}
}

// progress shows how far the work is until stop is called: one line that
// changes on a terminal, a line now and then elsewhere.
func (c console) progress(t *tally, total int) (stop func()) {
	if c.quiet {
		return func() {}
	}
	terminal := isTerminal(c.err) && os.Getenv("TERM") != "dumb"
	every := 2 * time.Second
	if terminal {
		every = 100 * time.Millisecond
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				line := fmt.Sprintf("%d of %d events, %d accepted, %d rejected", t.done.Load(), total, t.accepted.Load(), t.rejected.Load())
				if terminal {
					fmt.Fprintf(c.err, "\r%-72s", line)
				} else {
					fmt.Fprintln(c.err, line)
				}
			case <-quit:
				if terminal {
					fmt.Fprintf(c.err, "\r%72s\r", "")
				}
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-gone
	}
}

// summary prints what was done and what it cost.
func (c console) summary(t *tally, in *input) {
	if c.quiet {
		return
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, n int64) {
		fmt.Fprintf(w, "%s\t%s\t\n", name+strings.Repeat(" ", 28-len(name)), thousands(n))
	}
	fmt.Fprintln(w)
	row("orders", t.orders.Load())
	row("  of several products", t.several.Load())
	row("  accepted", t.accepted.Load())
	row("  rejected for lack of stock", t.rejected.Load())
	row("  duplicates", t.duplicates.Load())
	row("status events", t.states.Load())
	row("  applied", t.applied)
	row("  stale, dropped", t.stale.Load())
	row("  duplicates", max(0, t.stored.Load()-t.applied))
	row("malformed lines", int64(len(in.malformed)))
	if n := t.again.Load(); n > 0 {
		row("delivered again after errors", n)
	}
	_ = w.Flush()

	w = tabwriter.NewWriter(c.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\nrequests to\tstrategy\ttotal\teach")
	all := int64(0)
	one := t.orders.Load() - t.several.Load()
	for i, row := range [tables + 1]struct {
		to, strategy, of string
		per              int64
	}{
		{"stock", "pessimistic", "product ordered", t.products.Load()},
		{"customers", "optimistic", "order of one product", one},
		{"orders", "Get and Create", "order of one product", one},
		{"status", "nolock", "event", t.states.Load()},
		{"several tables", "transaction", "order of several products", t.several.Load()},
	} {
		n := t.requests[i]
		all += n
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f per %s\n", row.to, row.strategy, thousands(n), float64(n)/float64(max(1, row.per)), row.of)
	}
	_ = w.Flush()
	seconds := max(t.took.Seconds(), 1e-9)
	fmt.Fprintf(c.out, "\n%.1f s, %s events/s, %s requests/s\n", t.took.Seconds(),
		thousands(int64(float64(t.done.Load())/seconds)), thousands(int64(float64(all)/seconds)))
}

// audit prints the checks and reports whether all are well. Faults are printed
// even if the program is to be quiet.
func (c console) audit(checks []report.Check) bool {
	good, bad := mark(c.out, "ok", "32"), mark(c.err, "FAULT", "31")
	c.printf("\naudit of the tables against the input\n")
	faults := 0
	for _, k := range checks {
		faults += len(k.Faults)
		if len(k.Faults) == 0 {
			c.printf("  %s  %s (%s)\n", good, k.Name, thousands(int64(k.Looked)))
			continue
		}
		for i, f := range k.Faults {
			if i == shownFaults {
				fmt.Fprintf(c.err, "  ... and %d more\n", len(k.Faults)-i)
				break
			}
			fmt.Fprintf(c.err, "  %s  %s: %s\n", bad, k.Name, f)
		}
	}
	if faults > 0 {
		fmt.Fprintf(c.err, "inventory: the audit found %s\n", plural(faults, "fault", "faults"))
		return false
	}
	c.printf("Nothing oversold, nothing lost, nothing counted twice.\n")
	return true
}

func mark(w io.Writer, text, colour string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !isTerminal(w) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(int64(n)) + " " + many
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
