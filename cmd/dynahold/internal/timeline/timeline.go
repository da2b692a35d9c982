package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/record"
)

// Timeline is who held which lock when.
type Timeline struct {
	From   time.Time `json:"from"` // the first look
	To     time.Time `json:"to"`   // the last one
	Tables []Table   `json:"tables"`
	Locks  []Lock    `json:"locks"` // by table and name
}

// Table is a table that was watched.
type Table struct {
	Name    string `json:"table"`
	Every   int64  `json:"every_ms"` // the longest time between two looks that a watch was to make
	Watched []Span `json:"watched"`  // between them nobody looked
}

// Span is a time; both ends are looks.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Lock is one that was seen held.
type Lock struct {
	Table string `json:"table"`
	Name  string `json:"name"`
	Sort  string `json:"sort,omitempty"`
	Holds []Hold `json:"holds"` // in the order in which they were first seen
}

// Hold is one hold of a lock.
type Hold struct {
	Holder  string     `json:"holder"`
	Handed  bool       `json:"handed_over,omitempty"` // from the queue (Fair), and no look has seen to whom
	Token   int64      `json:"token"`                 // 0: taken by hand
	Mode    string     `json:"mode"`
	Since   *time.Time `json:"since"`             // when its holder asked for it, on the holder's clock; null: not known
	Until   *time.Time `json:"until"`             // end of its lease when it was last written down; null: without an end
	Absent  *time.Time `json:"absent"`            // the last look before that did not see it; null: there was none
	First   time.Time  `json:"first_seen"`        // the first look that saw it
	Last    time.Time  `json:"last_seen"`         // the last one
	Gone    *time.Time `json:"gone"`              // the look that saw it no more; null: there was none
	Overdue *time.Time `json:"overdue"`           // the look that found its lease over, without an extension after it; null: none did
	End     End        `json:"end"`               // how it ended
	Next    string     `json:"lost_to,omitempty"` // of a hold that was lost: who had the lock next
	Payload string     `json:"payload,omitempty"` // text, or base64 if it is none
	lost    int64      // above this token nobody lost the lock; the newest that was lost, if a hold had it
}

// End is how a hold ended, as far as looks tell.
type End string

// The ends of a hold. Whether somebody else ended it is known only from the lock of who came next: it
// has the newest token that was lost.
const (
	Open      End = "held"       // the last look saw it
	Expired   End = "expired"    // the last look saw it, with its lease over
	Released  End = "released"   // given back by its holder
	Ended     End = "ended"      // given back or broken: who came next, if anybody, does not tell
	TakenOver End = "taken_over" // somebody else ended it, after its lease
	Broken    End = "broken"     // somebody else ended it, before the end of its lease
	Lost      End = "lost"       // one of both: its lease ended between the two looks
)

// Bad reports whether its holder did not end it by itself.
func (e End) Bad() bool { return e != Open && e != Ended && e != Released }

// Build makes the timeline of records. Each is one file; the order makes no difference.
func Build(records ...[]record.Event) Timeline {
	var all []watch
	for _, r := range records {
		all = append(all, watches(r)...)
	}
	slices.SortStableFunc(all, func(a, b watch) int { return cmp.Or(strings.Compare(a.table, b.table), a.from.Compare(b.from)) })
	t := Timeline{Tables: []Table{}, Locks: []Lock{}}
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(w watch) bool { return w.table != all[0].table })
		if n < 0 {
			n = len(all)
		}
		t.add(all[:n])
		all = all[n:]
	}
	return t
}

// add adds one table, by all watches of it in the order of their starts.
func (t *Timeline) add(watches []watch) {
	table := Table{Name: watches[0].table, Watched: union(watches)}
	holds := merge(watches)
	for _, w := range watches {
		table.Every = max(table.Every, w.every.Milliseconds())
		if t.From.IsZero() || w.from.Before(t.From) {
			t.From = w.from
		}
		if w.to.After(t.To) {
			t.To = w.to
		}
	}
	t.Tables = append(t.Tables, table)
	for _, h := range holds {
		if n := len(t.Locks); n == 0 || t.Locks[n-1].Table != table.Name || t.Locks[n-1].Name != h.name || t.Locks[n-1].Sort != h.sort {
			t.Locks = append(t.Locks, Lock{Table: table.Name, Name: h.name, Sort: h.sort})
		}
		last := &t.Locks[len(t.Locks)-1]
		last.Holds = append(last.Holds, h.Hold)
	}
	for _, l := range t.Locks {
		if l.Table == table.Name {
			judge(l.Holds)
		}
	}
}

// judge says how the holds of one lock ended.
func judge(holds []Hold) {
	for i := range holds {
		h := &holds[i]
		switch {
		case h.Gone == nil && h.Overdue != nil:
			h.End = Expired
		case h.Gone == nil:
			h.End = Open
		default:
			h.End = Ended
		}
		if h.Gone == nil || h.Token == 0 {
			continue
		}
		later := holds[i+1:]
		if slices.ContainsFunc(later, func(n Hold) bool { return 0 < n.lost && n.lost < h.Token }) {
			h.End = Released
			continue
		}
		next := slices.IndexFunc(later, func(n Hold) bool { return n.lost == h.Token })
		if next < 0 {
			continue
		}
		if next == 0 {
			h.Next = holds[i+1].Who()
		}
		switch {
		case h.Overdue != nil:
			h.End = TakenOver
		case h.Until == nil || h.Until.After(*h.Gone):
			h.End = Broken
		default:
			h.End = Lost
		}
	}
}
