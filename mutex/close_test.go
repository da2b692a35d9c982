package mutex_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
)

// A lock that was taken in the moment of Close, and could not be released then,
// was in nobody's list: no later Close freed it.
func TestCloseInTheMomentOfALock(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	closed := func() bool { // sends nothing
		_, err := l.TryLock(over, "door")
		return errors.Is(err, mutex.ErrClosed)
	}
	b.Faults(func(op string, _ int, _ []byte) fault.Kind {
		if op == "DeleteItem" {
			return fault.Throttle
		}
		return fault.None
	})
	var closing sync.WaitGroup
	var seen atomic.Bool
	b.Count.OnRequest(func(op string, _ []byte) {
		if op == "UpdateItem" && seen.CompareAndSwap(false, true) {
			closing.Go(func() { _ = l.Close(context.Background()) })
			rig.Await(t, "Close has begun", closed)
		}
	})
	_, err := l.Lock(t.Context(), "door")
	rig.Is(t, err, mutex.ErrClosed)
	closing.Wait()
	b.Count.OnRequest(nil)
	b.Faults(nil)
	rig.Is(t, l.Close(t.Context()))
	if row := b.row(t, "door"); row != nil {
		t.Errorf("left behind: %v", row)
	}
}

// A hold that had ended without a verdict was reported by every Close.
func TestCloseForgetsWhatIsOver(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{})
	rival := rig.Must(mutex.New(rig.Client(), b.Table, mutex.Config{}))(t)
	k := lock(t, l, "door")
	var n atomic.Int32
	b.Faults(func(op string, _ int, _ []byte) fault.Kind {
		switch {
		case op != "DeleteItem":
		case n.Add(1) == 1:
			return fault.LoseResponse
		case n.Load() == 2: // between the lost answer and its repetition
			if _, err := rival.TryLock(t.Context(), "door"); err != nil {
				t.Error(err)
			}
		}
		return fault.None
	})
	_ = k.Unlock(t.Context()) // as good as its evidence
	b.Faults(nil)
	rig.Is(t, l.Close(t.Context()))
}
