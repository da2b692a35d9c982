package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dynahold/dynahold/semaphore"
)

// board shows how the work goes on: a table that is drawn anew in a terminal,
// lines of events elsewhere.
type board struct {
	out   io.Writer
	live  bool
	lines int // drawn last
	order []string
	rows  map[string]*row
	news  []string // the latest events
}

// row is what is known of an environment.
type row struct {
	now  semaphore.Resource
	done int
	by   map[string]string // who deploys what
}

func newBoard(out io.Writer, order []string) *board {
	b := &board{out: out, order: order, rows: map[string]*row{}}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		b.live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	for _, name := range order {
		b.rows[name] = &row{by: map[string]string{}}
	}
	return b
}

// tell notes an event.
func (b *board) tell(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !b.live {
		fmt.Fprintln(b.out, text)
		return
	}
	b.news = append(b.news, text)
	b.news = b.news[max(0, len(b.news)-6):]
}

// hear notes what a dispatcher said.
func (b *board) hear(e event) {
	r := b.rows[e.Environment]
	switch e.Kind {
	case began:
		for who, what := range r.by { // taken over from one that was killed
			if what == e.ID {
				delete(r.by, who)
			}
		}
		r.by[e.Who+"/"+e.ID] = e.ID
	case ended:
		delete(r.by, e.Who+"/"+e.ID)
		r.done++
	case failed:
		delete(r.by, e.Who+"/"+e.ID)
		b.tell("%s  %s in %s failed: %s", e.Who, e.ID, e.Environment, e.Error)
	}
}

// draw shows the table.
func (b *board) draw() {
	if !b.live {
		return
	}
	var text strings.Builder
	b.table(&text)
	for _, n := range b.news {
		fmt.Fprintln(&text, n)
	}
	if b.lines > 0 {
		fmt.Fprintf(b.out, "\x1b[%dA\x1b[J", b.lines) // back to where it was drawn, and clear
	}
	fmt.Fprint(b.out, text.String())
	b.lines = strings.Count(text.String(), "\n")
}

func (b *board) table(out io.Writer) {
	w := tabwriter.NewWriter(out, 2, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "environment\tlimit\tqueued\trunning\tdone\tdead\t  now\t")
	for _, name := range b.order {
		r := b.rows[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t  %s\t\n", name, max(r.now.Limit, 1), r.now.Queued, r.now.Running, r.done, r.now.Dead,
			strings.Join(slices.Sorted(maps.Keys(r.by)), " "))
	}
	_ = w.Flush()
}
