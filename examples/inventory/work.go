package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// How an order is handled, and why it stays right when the process is killed
// between any two steps and the queue delivers the message again, or twice at
// once:
//
//  1. stock:    decide, and note the decision under the order's id in Open, in
//               the same commit that takes the pieces.
//  2. customer: if accepted, add to the totals, and note the id in Open, in the
//               same write.
//  3. order:    create the order record. It exists: nothing is left to do.
//  4. Later, when somebody changes the stock item or the customer anyway, the
//               ids of finished orders are dropped from Open.
//
// Steps 1 and 2 find their own earlier work in Open and repeat nothing; step 3
// is a Create. An id that is not in Open is either new or dropped, and dropped
// means that the order record exists. So both steps look for that record, after
// they read the item and before they write it: under the lock, or under the
// version, nobody can finish and drop the order in between. That read is what
// keeps the items small for ever; to remember all ids on the hot item would
// save it, until the item is full.
//
// Why not create the order record first? A record without a decision tells the
// next worker only that somebody began, not how far he came.
//
// A process that dies between steps 3 and 4 leaves an id in Open. It does no
// harm; it takes its few bytes for good.

// tally counts what the workers did.
type tally struct {
	started, ended time.Time

	done                                            atomic.Int64 // events
	orders, accepted, rejected, duplicates          atomic.Int64
	statuses, stored, stale, applied, again         atomic.Int64 // stored: applied, or a repetition of what is stored
	stockRequests, customerRequests, orderRequests_ int64
}

// deliveries is how often an event is delivered before its error counts, like
// the receive count of a queue.
const deliveries = 3

// grace is how long workers may take to finish what they began when the program
// is interrupted.
const grace = 5 * time.Second

// work consumes the input. After an interruption it returns when the events
// under way are finished.
func (s *shop) work(ctx context.Context, in *input, workers int, c console) (*tally, error) {
	return nil, nil
}

var _ = slices.Contains[[]string]
var _ = fmt.Sprint
var _ sync.Mutex
var _ = errors.Is
var _ repo.Key
