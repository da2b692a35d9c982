package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// tally counts what the workers did.
type tally struct {
	started time.Time
	took    time.Duration

	done                           atomic.Int64 // events worked off
	orders, several                atomic.Int64 // several: those of several products
	products                       atomic.Int64 // lines of the orders
	accepted, rejected, duplicates atomic.Int64
	states, stored, stale          atomic.Int64 // stored: applied, or a repetition of what is stored
	again                          atomic.Int64 // deliveries that failed and were repeated

	applied  int64             // status events, from the versions of the items
	requests [tables + 1]int64 // by table, and those of transactions
}

const (
	// deliveries is how often an event is delivered before its error counts,
	// like the receive count of a queue.
	deliveries = 3
	// grace is how long workers may take to finish what they began when the
	// program is interrupted.
	grace = 5 * time.Second
)

// work consumes the input with concurrent workers, as several consumers of a
// queue would. The first event that fails for good ends it. After an
// interruption it returns when the events under way are finished.
func (s *shop) work(ctx context.Context, in *input, workers int, c console) (*tally, error) {
	t := &tally{started: time.Now()}
	before, err := s.writesOfStatus(ctx)
	if err != nil {
		return t, err
	}
	if err := s.fill(ctx, in.stock); err != nil {
		return t, err
	}
	stop := c.progress(t, len(in.events))

	// feeding ends with an interruption or an error, handling a little later.
	feeding, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	handling, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()

	queue := make(chan event)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for e := range queue {
				if err := s.deliver(handling, e, t); err != nil {
					fail(err)
				}
			}
		})
	}
	feed(feeding, in.events, queue)
	wg.Wait()
	stop()

	t.took = time.Since(t.started)
	t.requests = s.requests.take()
	if feeding.Err() != nil && ctx.Err() == nil {
		return t, context.Cause(feeding)
	}
	after, err := s.writesOfStatus(handling)
	t.applied = after - before
	return t, err
}

// feed sends events until it is told to stop.
func feed(ctx context.Context, events []event, queue chan<- event) {
	defer close(queue)
	for _, e := range events {
		select {
		case queue <- e:
		case <-ctx.Done():
			return
		}
	}
}

// fill creates the stock items. One that is there already is left as it is: a
// repetition, or the run is a resumed one.
func (s *shop) fill(ctx context.Context, stock []event) error {
	for _, e := range stock {
		_, err := s.stock.Create(ctx, stockItem{Product: e.Product, Left: e.Quantity})
		if err != nil && !errors.Is(err, repo.ErrExists) {
			return err
		}
	}
	return nil
}

// deliver handles an event, and again after an error, as a queue would deliver
// it again: every step stands its repetition, even after repo.ErrOutcomeUnknown.
func (s *shop) deliver(ctx context.Context, e event, t *tally) error {
	var err error
	for range deliveries {
		if err != nil {
			t.again.Add(1)
		}
		if err = s.handle(ctx, e, t); err == nil || ctx.Err() != nil {
			break
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s of order %s: %w", e.Kind, e.Order, err)
	case e.Kind == kindOrder:
		t.orders.Add(1)
		t.products.Add(int64(len(e.Lines)))
		if len(e.Lines) > 1 {
			t.several.Add(1)
		}
	default:
		t.states.Add(1)
	}
	t.done.Add(1)
	return nil
}

func (s *shop) handle(ctx context.Context, e event, t *tally) error {
	if e.Kind == kindOrder {
		return s.order(ctx, e, t)
	}
	// A stale event is a success: what it told has been overtaken, and to
	// deliver it again would not make it newer. A repetition is nil.
	err := s.status.Put(ctx, status{Order: e.Order, Status: e.Status, Time: e.Time.UnixMilli(), Event: e.Event})
	switch {
	case errors.Is(err, repo.ErrStale):
		t.stale.Add(1)
		return nil
	case err == nil:
		t.stored.Add(1)
	}
	return err
}
