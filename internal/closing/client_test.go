package closing_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/dynahold/dynahold/internal/closing"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/repo"
)

// A closed client takes nothing, ends the calls that wait, and gives back what it
// holds; what could not be given back is tried again.
func TestClient(t *testing.T) {
	closed, sour := errors.New("closed"), errors.New("sour")
	o := closing.New[int](closed)
	for h := range 3 {
		if err := o.Add(h); err != nil {
			t.Fatal(err)
		}
	}
	o.Remove(1)
	ctx, end, err := o.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, closed) {
			t.Errorf("a call ends with %v", cause)
		}
		if err := o.Add(3); !errors.Is(err, closed) { // as one that had just been answered
			t.Errorf("what comes late: %v", err)
		}
		end()
	})
	var ended [4]int
	err = o.Close(t.Context(), func(h int) error {
		if ended[h]++; h == 2 {
			return sour
		}
		o.Remove(h)
		return nil
	})
	if !errors.Is(err, sour) || ended != [4]int{1, 0, 1, 1} {
		t.Errorf("%v; ended %v", err, ended)
	}
	if _, _, err := o.Begin(t.Context()); !errors.Is(err, closed) {
		t.Errorf("a call after it: %v", err)
	}
	if err := o.Close(t.Context(), func(h int) error { ended[h]++; return nil }); err != nil || ended != [4]int{1, 0, 2, 1} {
		t.Errorf("again: %v; ended %v", err, ended)
	}
}

// What ends its goroutine, as a client of a test does that fails it, may have given back
// something: nobody knows, and the verdict says so. It keeps nothing else from being given back.
func TestCloseTellsOfWhatEndsItsGoroutine(t *testing.T) {
	var all [40]int
	for i := range all {
		all[i] = i
	}
	var ended atomic.Int32
	errs := closing.Each(all[:], func(h int) error {
		if ended.Add(1); h%2 == 0 {
			runtime.Goexit()
		}
		return nil
	})
	err := errors.Join(errs...)
	if len(errs) != 20 || !errors.Is(err, goroutine.ErrEnded) || repo.VerdictOf(err) != repo.Unknown || ended.Load() != 40 {
		t.Errorf("%d errors, %v; %d were asked", len(errs), err, ended.Load())
	}
}

// A call that does not end is not waited for longer than the context lasts.
func TestCloseReportsCallsUnderWay(t *testing.T) {
	o := closing.New[int](errors.New("closed"))
	_, end, err := o.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.Close(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("closed with %v", err)
	}
}
