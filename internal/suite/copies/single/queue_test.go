package single_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// standing are calls without the lock that stand in the queue on a locked item.
func standing() (all []call) {
	byDefault := func(do func(*nolock.Repository[account], context.Context, account) error) func(*testing.T, table) func(context.Context, account) error {
		return func(t *testing.T, on table) func(context.Context, account) error {
			r := rig.Must(nolock.New(on, nolock.Config{}))(t)
			return func(ctx context.Context, was account) error { return do(r, ctx, was) }
		}
	}
	return []call{
		{name: "optimistic.Update", open: byVersion(optimistic.Config{}, func(r *optimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Update(ctx, fixture.Key, add)
			return err
		})},
		{name: "optimistic.Apply", open: byVersion(optimistic.Config{}, func(r *optimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Apply(ctx, fixture.Key, plusOne())
			return err
		})},
		{name: "optimistic.Delete", deletes: true, open: byVersion(optimistic.Config{}, func(r *optimistic.Repository[account], ctx context.Context, _ account) error {
			return r.Delete(ctx, fixture.Key)
		})},
		{name: "nolock.Update", open: byDefault(func(r *nolock.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Update(ctx, fixture.Key, add)
			return err
		})},
		{name: "nolock.Put", open: byDefault(func(r *nolock.Repository[account], ctx context.Context, was account) error {
			was.Balance, was.At = was.Balance+1, 1000
			return r.Put(ctx, was)
		})},
		{name: "nolock.DeleteAt", deletes: true, open: byDefault(func(r *nolock.Repository[account], ctx context.Context, _ account) error {
			return r.DeleteAt(ctx, fixture.Key, 1000)
		})},
	}
}

// accident is what befalls one write of a call, and what leaves of it.
type accident struct {
	name string
	act  func(one *fault.Copy, leave context.CancelFunc) (*http.Response, error)
	late bool // it is delivered again behind the call
	dies bool // and nothing of the process arrives behind it
	// breaks: others end the hold of whoever has the lock then.
	breaks bool
}

var errCut = errors.New("connection reset")

func delivered(one *fault.Copy) error {
	resp, err := one.Deliver()
	if err == nil {
		err = resp.Body.Close()
	}
	return errors.Join(err, errCut)
}

var accidents = []accident{
	{name: "twice, the second answer seen", act: func(one *fault.Copy, _ context.CancelFunc) (*http.Response, error) {
		if err := delivered(one); !errors.Is(err, errCut) {
			return nil, err
		}
		return one.Deliver()
	}},
	{name: "late, behind the call", late: true, act: func(*fault.Copy, context.CancelFunc) (*http.Response, error) { return nil, nil }},
	{name: "its answer is lost", act: func(one *fault.Copy, _ context.CancelFunc) (*http.Response, error) { return nil, delivered(one) }},
	{name: "it is lost", act: func(*fault.Copy, context.CancelFunc) (*http.Response, error) { return nil, errCut }},
	{name: "its answer is lost, and the caller leaves", act: func(one *fault.Copy, leave context.CancelFunc) (*http.Response, error) {
		defer leave()
		return nil, delivered(one)
	}},
	{name: "it is lost, and the caller leaves", act: func(_ *fault.Copy, leave context.CancelFunc) (*http.Response, error) {
		leave()
		return nil, errCut
	}},
	{name: "its answer is lost, and the process dies", dies: true, act: func(one *fault.Copy, leave context.CancelFunc) (*http.Response, error) {
		defer leave()
		return nil, delivered(one)
	}},
	{name: "its hold is broken before it arrives", breaks: true, act: func(*fault.Copy, context.CancelFunc) (*http.Response, error) { return nil, nil }},
	{name: "the caller leaves", act: func(_ *fault.Copy, leave context.CancelFunc) (*http.Response, error) {
		leave()
		return nil, nil
	}},
}

// Writers without the lock that stand in the queue on an item: whatever befalls one of
// their requests, the verdict is true, nothing is applied twice, and soon others have
// their turn.
func TestWritersInTheQueue(t *testing.T) {
	for _, c := range standing() {
		for _, a := range accidents {
			t.Run(c.name+"/"+a.name, func(t *testing.T) {
				t.Parallel()
				for nth, more := 0, true; more; nth++ {
					t.Run(fmt.Sprint("write ", nth), func(t *testing.T) { more = c.inQueue(t, a, nth) })
				}
			})
		}
	}
}

// inQueue lets an accident befall the nth write of a call that meets a queue.
func (c call) inQueue(t *testing.T, a accident, nth int) (more bool) {
	w := newWorld(t, c)
	release := w.queue(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var mu sync.Mutex
	var hit *fault.Copy
	writes, released := 0, false
	w.copier.On(func(one *fault.Copy) (*http.Response, error) {
		if !fault.Writes(one) {
			return nil, nil
		}
		mu.Lock()
		writes++
		mine := writes == nth+1
		if mine {
			hit = one
		}
		free, dead := released, hit != nil && !mine && a.dies
		mu.Unlock()
		switch {
		case dead:
			return nil, errCut
		case !mine:
			return nil, nil
		case a.breaks && free:
			w.breakHold(t)
		}
		return a.act(one, leave)
	})
	ended := make(chan error, 1)
	go func() { ended <- w.run(ctx, w.was) }()
	rig.Await(t, "the writer waits, or leaves", func() bool { return w.waiting(t) >= 2 || len(ended) > 0 })
	release()
	mu.Lock()
	released = true
	mu.Unlock()
	err := <-ended
	w.copier.On(nil)
	if hit == nil {
		return false
	}
	if a.late {
		if failed := delivered(hit); !errors.Is(failed, errCut) {
			t.Error(failed)
		}
	}
	switch {
	case a.dies: // nobody is told anything
		if n := w.applied(t, c); n > 1 {
			t.Errorf("applied %d times", n)
		}
		w.endsWithALease(t)
	case a.late:
		w.check(t, c, err)
		w.endsWithALease(t)
	default:
		w.check(t, c, err)
		w.turnComes(t)
	}
	return true
}

// queue lets somebody hold the item and another wait for it. release lets both go.
func (w *world) queue(t *testing.T) (release func()) {
	locker := func() *lockedread.Locker[account] {
		return rig.Must(lockedread.New(w.Items(t, rig.Client()), lockedread.Config{}))(t)
	}
	holder := rig.Must(locker().Acquire(t.Context(), fixture.Key))(t)
	passed := make(chan error, 1)
	go func() {
		h, err := locker().Acquire(t.Context(), fixture.Key)
		if err == nil {
			err = h.Release(t.Context())
		}
		passed <- err
	}()
	rig.Await(t, "one waits", func() bool { return w.waiting(t) >= 1 })
	return func() {
		rig.Is(t, holder.Release(t.Context()))
		rig.Is(t, <-passed)
	}
}

// waiting is how many wait in the queue on the item.
func (w *world) waiting(t *testing.T) int {
	queue, _ := w.Raw(t, fixture.Key)["lockQueue"].(*types.AttributeValueMemberL)
	if queue == nil {
		return 0
	}
	n := 0
	for _, entry := range queue.Value { // who has left leaves NULL
		if _, there := entry.(*types.AttributeValueMemberB); there {
			n++
		}
	}
	return n
}

// turnComes looks whether others come to the item within what a dead waiter may cost.
func (w *world) turnComes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l := rig.Must(lockedread.New(w.Items(t, rig.Client()), lockedread.Config{}))(t)
	h, err := l.AcquireOrCreate(ctx, fixture.Key)
	if err != nil {
		t.Errorf("nobody else has a turn: %v", err)
		return
	}
	rig.Is(t, h.Release(t.Context()))
}

// endsWithALease looks whether the lock, which a request has taken that nobody waits for,
// is over when a lease is.
func (w *world) endsWithALease(t *testing.T) {
	info, err := w.Items(t, rig.Client()).Inspect(t.Context(), fixture.Key)
	if err == nil && info.Until.After(time.Now().Add(31*time.Second)) {
		t.Errorf("held until %v", info.Until)
	}
}

// breakHold ends the hold of whoever has the lock.
func (w *world) breakHold(t *testing.T) {
	info, err := w.Items(t, rig.Client()).Inspect(t.Context(), fixture.Key)
	if err != nil || info.Token == 0 {
		return
	}
	err = rig.Must(lockedread.New(w.Items(t, rig.Client()), lockedread.Config{}))(t).Break(t.Context(), fixture.Key, info.Token)
	if err != nil && !errors.Is(err, repo.ErrNotHeld) {
		t.Error(err)
	}
}

// A change that panics in its turn, or whose turn is ended by others meanwhile, keeps
// nobody out, and is applied once or not at all.
func TestChangesInTheirTurn(t *testing.T) {
	for name, inTurn := range map[string]func(t *testing.T, w *world){
		"it panics":    func(*testing.T, *world) { panic("as the test asks") },
		"it is broken": func(t *testing.T, w *world) { w.breakHold(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var inTime atomic.Bool
			var w *world
			c := call{name: "optimistic.Update", open: byVersion(optimistic.Config{}, func(r *optimistic.Repository[account], ctx context.Context, _ account) (err error) {
				defer func() {
					if recover() != nil {
						err = errCut
					}
				}()
				_, err = r.Update(ctx, fixture.Key, func(_ context.Context, a *account) error {
					a.Balance++
					if _, err := w.Items(t, rig.Client()).Inspect(t.Context(), fixture.Key); err == nil && !inTime.Swap(true) {
						inTurn(t, w) // it is held: by this call
					}
					return nil
				})
				return err
			})}
			w = newWorld(t, c)
			release := w.queue(t)
			ended := make(chan error, 1)
			go func() { ended <- w.run(t.Context(), w.was) }()
			rig.Await(t, "both wait", func() bool { return w.waiting(t) >= 2 })
			release()
			err := <-ended
			if !inTime.Load() {
				t.Error("the change has run without its turn")
			}
			w.check(t, c, err)
			w.turnComes(t)
		})
	}
}
