package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dynahold/dynahold/jobs"
)

// board shows how the work goes on: a table that is drawn anew in a terminal,
// lines of events elsewhere.
type board struct {
	out   io.Writer
	live  bool
	lines int // drawn last
	order []string
	plan  map[string]deployment // by id
	rows  map[string]*row
	news  []string // the latest events
}

// row is what is known of an environment.
type row struct {
	now  jobs.Resource
	done map[string]bool   // deployments
	by   map[string]string // who is at a deployment
}

func newBoard(out io.Writer, plan []deployment) *board {
	b := &board{out: out, order: environments(plan), plan: map[string]deployment{}, rows: map[string]*row{}}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		b.live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	for _, d := range plan {
		b.plan[d.ID] = d
	}
	for _, name := range b.order {
		b.rows[name] = &row{done: map[string]bool{}, by: map[string]string{}}
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
	b.news = b.news[max(0, len(b.news)-8):]
}

// hear notes what a dispatcher said.
func (b *board) hear(e event) {
	r := b.rows[e.Environment]
	if e.Kind == began {
		r.by[e.ID] = e.Who // in place of one that was killed or paused, if it is taken over
		return
	}
	if r.by[e.ID] == e.Who {
		delete(r.by, e.ID)
	}
	switch e.Kind {
	case ended:
		r.done[e.ID] = true
	case failed:
		b.tell("%s  in %s: %s", e.Who, e.Environment, e.Error)
	case refused:
		b.tell("%s  its late write about %s to %s is %s", e.Who, b.plan[e.ID].name(), e.Environment, e.Error)
	}
}

// width of the live table: a line that does not fit would be drawn as two.
const width = 79

// draw shows the table and the latest events, in place of those drawn before.
func (b *board) draw() {
	if !b.live {
		return
	}
	var text strings.Builder
	b.table(&text)
	text.WriteString("\n" + strings.Join(b.news, "\n") + "\n")
	if b.lines > 0 {
		fmt.Fprintf(b.out, "\x1b[%dA\x1b[J", b.lines) // back to where it was drawn, and clear
	}
	lines := strings.SplitAfter(text.String(), "\n")
	for _, l := range lines {
		if len(l) > width {
			l = l[:width-3] + "...\n"
		}
		fmt.Fprint(b.out, l)
	}
	b.lines = len(lines) - 1
}

func (b *board) table(out io.Writer) {
	fmt.Fprintln(out, "environment  limit  queued  running  done  dead  now")
	for _, name := range b.order {
		r := b.rows[name]
		var now []string
		for _, id := range slices.Sorted(maps.Keys(r.by)) {
			now = append(now, r.by[id]+" "+b.plan[id].name())
		}
		line := fmt.Sprintf("%-11s  %5d  %6d  %7d  %4d  %4d  %s", name, max(r.now.Limit, 1), r.now.Queued, r.now.Running,
			len(r.done), r.now.Dead, strings.Join(now, ", "))
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
}
