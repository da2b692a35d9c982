package record

import (
	"cmp"
	"strings"
	"time"
)

// Lock is a lock that is held, as JSON.
type Lock struct {
	Name   string `json:"name"`
	Sort   string `json:"sort,omitempty"`
	Holder string `json:"holder"`
	Token  int64  `json:"token"`
	Lost   int64  `json:"lost,omitempty"` // token that was lost to a takeover or a break, the newest one, as far as known; in records that lack NoneLostAbove, what is there
	// NoneLostAbove is a token above which nobody lost a hold: the newest that was lost, or,
	// where none was, the one below the first; 0: not known.
	NoneLostAbove int64 `json:"none_lost_above,omitempty"`

	Mode    string     `json:"mode"`
	Since   *time.Time `json:"since"` // when its holder asked for it; null: taken without the library
	Until   *time.Time `json:"until"` // null: without an end
	Expired bool       `json:"expired"`
	Handed  bool       `json:"handed_over,omitempty"` // in the queue (Fair): the row does not name its holder
	Waiting []string   `json:"waiting,omitempty"`     // who waits in the queue (Fair), in the order of service, by short ids
	Payload string     `json:"payload,omitempty"`     // text, or base64 if it is none
}

// Hold tells the holds of one table apart: by their tokens, which are given out once. What
// was taken by hand has none, but a holder.
type Hold struct {
	Name, Sort, ByHand string
	Token              int64
}

// Hold is which hold of which lock it is.
func (l Lock) Hold() Hold {
	h := Hold{Name: l.Name, Sort: l.Sort, Token: l.Token}
	if l.Token == 0 {
		h.ByHand = l.Holder
	}
	return h
}

// Compare orders locks by name.
func Compare(a, b Lock) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Sort, b.Sort))
}

// Kind is what an event tells.
type Kind string

// The kinds of events. Those with a lock are changes.
const (
	Watching Kind = "watching" // the first look of a watch
	Held     Kind = "held"     // found by the first look
	Taken    Kind = "taken"    // found by a later look; once more when one that was handed over has its holder
	Expired  Kind = "expired"  // the lease is over, and the lock is there all the same
	Extended Kind = "extended" // the holder has extended an expired one
	Ended    Kind = "ended"    // it is gone; Lock is as the look before saw it
	Looked   Kind = "looked"   // no change
	Stopped  Kind = "stopped"  // the watch ended; Time is its last look
)

// Event is one line of a record.
type Event struct {
	Time   time.Time  `json:"time"`             // of the look that has found it
	Before *time.Time `json:"before,omitempty"` // of the look before; not for the first look
	Event  Kind       `json:"event"`
	Table  string     `json:"table"`              // as the watch was told it
	Every  int64      `json:"every_ms,omitempty"` // between two looks; of watching
	Lock   *Lock      `json:"lock,omitempty"`     // of a change
}

// quiet is how long a record may be without a line.
const quiet = time.Minute

// Watch makes events of looks at one table.
type Watch struct {
	table string
	every time.Duration

	locks   []Lock    // as the last look saw them
	last    time.Time // of the last look; zero before the first one
	written time.Time // look of the last event
	failed  bool      // a look failed since the last one
}

// NewWatch watches a table, with looks that are every apart.
func NewWatch(table string, every time.Duration) *Watch {
	return &Watch{table: table, every: every}
}

// Look takes what a look has seen, in the order of names, and returns what it has found.
func (w *Watch) Look(now []Lock, at time.Time) []Event {
	at = at.UTC()
	var all []Event
	event := func(kind Kind, l *Lock) {
		e := Event{Time: at, Event: kind, Table: w.table, Lock: l}
		if !w.last.IsZero() {
			before := w.last
			e.Before = &before
		}
		all = append(all, e)
	}
	if w.last.IsZero() {
		event(Watching, nil)
		all[0].Every = w.every.Milliseconds()
	}
	before, holds := index(w.locks), index(now)
	noteLost(w.locks, now)
	for _, l := range w.locks {
		if _, still := holds[l.Hold()]; !still {
			event(Ended, &l)
		}
	}
	for _, l := range now {
		old, was := before[l.Hold()]
		switch {
		case w.last.IsZero():
			event(Held, &l)
		case !was, old.Handed && !l.Handed:
			event(Taken, &l)
		case l.Expired && !old.Expired:
			event(Expired, &l)
		case !l.Expired && old.Expired:
			event(Extended, &l)
		}
	}
	if len(all) == 0 && (w.failed || at.Sub(w.written) >= quiet) {
		event(Looked, nil)
	}
	if len(all) > 0 {
		w.written = at
	}
	w.locks, w.last, w.failed = now, at, false
	return all
}

// noteLost says what locks have lost since a look that has seen it held, and what was
// known of them then.
func noteLost(before, now []Lock) {
	held := make(map[[2]string]Lock, len(before))
	for _, l := range before {
		held[[2]string{l.Name, l.Sort}] = l
	}
	for i := range now {
		l := &now[i]
		was, is := held[[2]string{l.Name, l.Sort}]
		if is && l.NoneLostAbove > 0 && (l.NoneLostAbove == was.Token && was.Token != l.Token || l.NoneLostAbove == was.Lost) {
			l.Lost = l.NoneLostAbove
		}
	}
}

func index(locks []Lock) map[Hold]Lock {
	all := make(map[Hold]Lock, len(locks))
	for _, l := range locks {
		all[l.Hold()] = l
	}
	return all
}

// Failed notes a look that saw nothing.
func (w *Watch) Failed() { w.failed = true }

// Stop ends the watch.
func (w *Watch) Stop() []Event {
	if w.last.IsZero() {
		return nil
	}
	return []Event{{Time: w.last, Event: Stopped, Table: w.table}}
}
