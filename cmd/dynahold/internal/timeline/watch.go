package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/record"
)

// watch is one run of locks watch: its looks follow each other.
type watch struct {
	table    string
	every    time.Duration
	from, to time.Time
	blind    []Span // without looks, because they failed
	holds    []seen
	open     map[record.Hold]int // those that were there at the last look: which of holds
}

// seen is a hold of a lock, by its name.
type seen struct {
	name, sort string
	Hold
}

// blindAfter is how many looks may be late before a time counts as one without looks.
const blindAfter = 3

// watches parts a record into its watches, which may be of several tables.
func watches(events []record.Event) (all []watch) {
	running := map[string]int{} // by table: which of all
	for _, e := range events {
		n, is := running[e.Table]
		if e.Event == record.Watching || !is {
			n = len(all)
			running[e.Table] = n
			from := e.Time
			if e.Before != nil {
				from = *e.Before // its beginning is missing
			}
			all = append(all, watch{table: e.Table, every: time.Duration(e.Every) * time.Millisecond, from: from, to: e.Time, open: map[record.Hold]int{}})
		}
		all[n].take(e)
		if e.Event == record.Stopped {
			delete(running, e.Table)
		}
	}
	for i := range all {
		all[i].close()
	}
	return all
}

// take adds an event of the watch.
func (w *watch) take(e record.Event) {
	if e.Before != nil && w.every > 0 && e.Time.After(w.to) && e.Time.Sub(*e.Before) > blindAfter*w.every {
		w.blind = append(w.blind, Span{*e.Before, e.Time})
	}
	if e.Time.After(w.to) {
		w.to = e.Time
	}
	if e.Lock == nil {
		return
	}
	l := *e.Lock
	n, is := w.open[l.Hold()]
	if !is {
		first := Hold{First: e.Time}
		switch {
		case e.Event == record.Taken:
			first.Absent = e.Before
		case e.Before != nil: // a line of its beginning is missing: that look saw it
			first.First = *e.Before
		}
		n = len(w.holds)
		w.open[l.Hold()] = n
		w.holds = append(w.holds, seen{l.Name, l.Sort, first})
	}
	h := &w.holds[n].Hold
	h.Holder, h.Handed, h.Token = l.Holder, l.Handed, l.Token
	h.Mode, h.Since, h.Until, h.Payload, h.lost = l.Mode, l.Since, l.Until, l.Payload, cmp.Or(l.NoneLostAbove, l.Lost)
	switch {
	case e.Event == record.Ended:
		delete(w.open, l.Hold())
		gone := e.Time
		h.Last = gone
		if e.Before != nil {
			h.Last = *e.Before
		}
		if h.Last.Before(h.First) { // the clock was set back
			h.Last = h.First
		}
		if gone.Before(h.Last) {
			gone = h.Last
		}
		h.Gone = &gone
		if l.Expired && h.Overdue == nil {
			h.Overdue = &h.Last
		}
	case e.Event == record.Extended:
		h.Overdue = nil
	case l.Expired && h.Overdue == nil:
		h.Overdue = &e.Time
	}
}

// close ends what was still held with the last look.
func (w *watch) close() {
	for _, n := range w.open {
		w.holds[n].Last = w.to
	}
}

// merge makes one hold of what several watches have seen of it, and says what each
// watch tells of the holds of others. The result is in the order of locks, and of
// first sights.
func merge(watches []watch) []seen {
	var all []seen
	known := map[record.Hold]int{} // which of all
	for _, w := range watches {
		for _, h := range w.holds {
			id := record.Hold{Name: h.name, Sort: h.sort, Token: h.Token}
			n, is := known[id]
			if !is || h.Token == 0 { // by hand: a hold of one watch
				known[id] = len(all)
				all = append(all, h)
				continue
			}
			all[n].join(h.Hold)
		}
	}
	for i := range all {
		all[i].bound(watches)
	}
	slices.SortStableFunc(all, func(a, b seen) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.sort, b.sort), a.First.Compare(b.First), cmp.Compare(a.Token, b.Token))
	})
	return all
}

// join adds what another watch has seen of the hold.
func (h *seen) join(o Hold) {
	if o.First.Before(h.First) {
		h.First = o.First
	}
	h.notYet(o.Absent)
	gone := h.Gone
	if o.Last.After(h.Last) {
		if o.Overdue == nil || h.Overdue == nil {
			h.Overdue = o.Overdue
		}
		if !o.Handed || h.Handed {
			h.Holder, h.Handed = o.Holder, o.Handed
		}
		h.Last, h.Gone, h.Until, h.lost = o.Last, o.Gone, o.Until, o.lost
	}
	h.noMore(gone)
	h.noMore(o.Gone)
}

// bound says which looks of all watches did not see the hold: the last one before and
// the first one after.
func (h *seen) bound(watches []watch) {
	for _, w := range watches {
		h.notYet(&w.to)
		h.noMore(&w.from)
	}
}

// notYet notes a look that did not see the hold, if it was before it.
func (h *seen) notYet(at *time.Time) {
	if at != nil && at.Before(h.First) && (h.Absent == nil || h.Absent.Before(*at) || !h.Absent.Before(h.First)) {
		h.Absent = at
	}
}

// noMore notes a look that did not see the hold, if it was after it.
func (h *seen) noMore(at *time.Time) {
	if at != nil && at.After(h.Last) && (h.Gone == nil || h.Gone.After(*at)) {
		h.Gone = at
	}
}

// union is when at least one watch looked.
func union(watches []watch) []Span {
	var all []Span
	for _, w := range watches {
		from := w.from
		for _, b := range w.blind {
			all = append(all, Span{from, b.From})
			from = b.To
		}
		all = append(all, Span{from, w.to})
	}
	slices.SortFunc(all, func(a, b Span) int { return a.From.Compare(b.From) })
	joined := all[:1]
	for _, s := range all[1:] {
		last := &joined[len(joined)-1]
		if s.From.After(last.To) {
			joined = append(joined, s)
		} else if s.To.After(last.To) {
			last.To = s.To
		}
	}
	return joined
}
