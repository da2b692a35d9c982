package ddb

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/internal/telemetry"
)

// endpoint is what was found out about the endpoint of a table's client.
type endpoint struct {
	sums   atomic.Bool // its replies carry a checksum
	ids    atomic.Bool // and the id of the request
	grants atomic.Bool // it has granted a request: its user's credentials are good
	images atomic.Bool // a failed condition has shown its item
	blind  atomic.Bool // a failed condition has not, though there was one
	doubt  atomic.Pointer[doubt]
}

// doubt is an item that was there right after a condition had failed without
// showing one.
type doubt struct {
	item Item      // with its key
	at   time.Time // when it had been read
}

// ImageError says that an endpoint cannot be used: whether a failed condition
// met an item is not to be learned from it.
type ImageError struct{ Table string }

func (e *ImageError) Error() string {
	return fmt.Sprintf("table %q: the endpoint does not return the item that failed a condition (ReturnValuesOnConditionCheckFailure), "+
		"as DynamoDB does: without it a conflict cannot be told from a missing item", e.Table)
}

// withImage looks at the image of a failed condition. Several servers that are
// compatible otherwise return none, and then an item that is there would pass
// for one that is not.
func (t *Table) withImage(ctx context.Context, key Item, opt Options, res Result) Result {
	e := &t.endpoint
	switch {
	case res.Outcome != Condition:
		return res
	case len(res.Image) > 0:
		if !e.images.Load() {
			e.images.Store(true)
		}
		return res
	case opt.OnItem, opt.Absence && e.blind.Load():
		return t.imageless(res)
	case !opt.Absence || e.images.Load():
		return res
	}
	item, err := t.unseen(ctx, key)
	switch {
	case err != nil:
		return res.without(err)
	case item == nil:
		e.doubt.Store(nil)
		return res
	}
	// It may have come into being just now. What is there unchanged since before
	// the write was sent did not.
	before := e.doubt.Swap(&doubt{item, time.Now()})
	if before != nil && res.Sent.After(before.at) && EqualItems(before.item, item) {
		return t.imageless(res)
	}
	res.Image, res.Late = item, true
	return res
}

// unseen reads the item that a failed condition did not show.
func (t *Table) unseen(ctx context.Context, key Item) (Item, error) {
	if ctx.Err() != nil {
		longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFor)
		defer cancel()
		ctx = longer
	}
	return t.Get(ctx, key)
}

// imageless is the result of a write whose condition failed on an item that the
// endpoint does not show.
func (t *Table) imageless(res Result) Result {
	if t.endpoint.blind.CompareAndSwap(false, true) {
		t.Observe.Event(context.Background(), slog.LevelError, telemetry.EventNoImage, (&ImageError{t.Name}).Error())
	}
	return res.without(t.Classify(&ImageError{t.Name}))
}

// without is the result of a failed condition of which nothing more is known:
// the attempt that failed has changed nothing.
func (r Result) without(err error) Result {
	r.Outcome, r.Err = Refused, err
	if !r.Clean {
		r.Outcome = Unknown
	}
	return r
}
