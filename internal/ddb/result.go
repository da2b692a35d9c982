package ddb

import (
	"context"
	"time"
)

// Outcome is what became of a conditional write.
type Outcome int

// The outcomes. The zero value is the harmless one.
const (
	Refused   Outcome = iota // certainly not applied; Result.Err says why
	Applied                  // applied
	Condition                // the condition failed; Result.Image shows the item
	Unknown                  // may or may not have been applied
)

// Result is the outcome of one conditional write over all its attempts.
type Result struct {
	Outcome Outcome
	Item    Item      // what an applied write returned
	Image   Item      // the item that failed the condition; empty: none exists
	Late    bool      // Image was read behind an answer without one: it may have come into being since
	Images  []Image   // the same for each write of a transaction
	Clean   bool      // no earlier attempt of this call may have been applied
	Sent    time.Time // when the first attempt was sent
	Limit   int       // attempts that the client's policy allows; 0: no limit
	Again   bool      // there was no answer, but another attempt may have one
	// Unjudged says that the service has refused an attempt without a look at the item: of a
	// copy of it that the network made, and that came first, that says nothing.
	Unjudged bool
	Unread   bool  // it was to be judged by the item, which could not be read; see [Table.Looked]
	Err      error // for Refused and Unknown
}

// Shown is the item as the answer shows it: as written, or as the condition found it.
func (r Result) Shown() Item {
	if r.Outcome == Applied {
		return r.Item
	}
	return r.Image
}

// Options changes how one call is sent.
type Options struct {
	Timeout time.Duration // of one attempt, if shorter than the sender's
	// Hedge sends the first attempt again, beside itself, if its answer is late; see there.
	Hedge   Hedge
	NoGrace bool // on cancellation in mid-write, do not repeat to settle it
	Once    bool // never repeat an attempt that may have been applied
	// Single makes one attempt: its caller repeats it, by a clock that cannot wait
	// for the client's policy.
	Single bool
	// AwaitAnswer says that the write takes something that the caller will not have if
	// its context ends. The answer is then waited for, for Settle: given up in
	// flight, the write could land behind the one that takes it back. Implies
	// NoGrace.
	AwaitAnswer bool
	// Holding says that others wait while the request is under way: the caller holds
	// what they want, or is the first in their line. The sleeps between its attempts are
	// then short. It is given up no sooner than with the sleeps of the client's policy:
	// for as long as one of those would last, a throttled request is sent again and
	// again.
	Holding bool
	// Stale says that a read may miss the last writes: it is eventually consistent, and
	// bills half. Its caller takes what it shows for true once, never for the latest.
	Stale bool
	// Decide says that the write is bound to what it has read, so that its repetition does
	// no harm, and its answer is the verdict on all attempts: in doubt it is sent again
	// beyond the client's policy, for Settle at most.
	Decide bool
	// Stands reports whether an item is as it was before the write: nothing of it was
	// applied. With it a write that was given up unjudged is judged by the item, which costs
	// one read; see [Table.Looked].
	Stands func(Item) bool
	// Judge is asked before a throttled write is sent again: true ends it, with
	// [ErrJudged].
	Judge interface{ Judged(context.Context) bool }
	// OnItem says that the condition can fail only on an item that is there: an
	// endpoint that then shows none cannot be used.
	OnItem bool
	// OnItems are the parts of a transaction of which OnItem is true.
	OnItems []int
	// Absence says that the caller takes an empty image for evidence that there
	// is no item. Until the endpoint has shown an image, that is confirmed by a
	// read.
	Absence bool
	// Sending is what was sent of the write by calls before; nil: there were none.
	Sending *Sending
	// Conflicts says that the caller sends the write again when another transaction was
	// in the way: it is told at once, unless an earlier attempt may have been applied.
	Conflicts bool
}

// Shorten bounds an attempt.
func (o *Options) Shorten(most time.Duration) {
	if o.Timeout == 0 || most < o.Timeout {
		o.Timeout = most
	}
}
