package lockedread_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// hush makes requests silent whose text contains a word, from a call of the
// function that it returns: at most so many, before they arrive.
func hush(text string, most int64) (lost func(op, body string) (before, after bool), begin func()) {
	var on atomic.Bool
	var n atomic.Int64
	return func(_, body string) (bool, bool) {
		return on.Load() && strings.Contains(body, text) && n.Add(1) <= most, false
	}, func() { on.Store(true) }
}

const always = 1 << 40

// Texts that tell requests apart.
const (
	extending = "#lockTime < :until"
	anything  = ""
)

// TestCommitOvertakesAnExtension: it does not wait for the answer of one under
// way, which gives way.
func TestCommitOvertakesAnExtension(t *testing.T) {
	for _, fair := range []bool{false, true} {
		b := newBench(t)
		inVirtualTime(t, func(t *testing.T, network fault.Doer) {
			lost, begin := hush(extending, always)
			held := acquire(t, b.over(t, &rig.Mortal{Next: network, Lost: lost}, lockedread.Config{Fair: fair}))
			begin()
			extended := make(chan error)
			go func() { extended <- held.Extend(t.Context()) }()
			synctest.Wait()
			began := time.Now()
			item := held.Item()
			item.Count++
			_, err := held.Commit(t.Context(), item)
			if rig.Is(t, err); time.Since(began) > 0 {
				t.Errorf("committed after %v", time.Since(began))
			}
			rig.Is(t, <-extended, repo.ErrReleased)
		})
		wantCount(t, b, 11)
		wantClean(t, b)
	}
}

// TestNobodyWaitsLongerThanItsContext: a call beside another one of its hold
// that has no answer, and no end, ends with its own context, and with what is
// documented for it.
func TestNobodyWaitsLongerThanItsContext(t *testing.T) {
	commit := func(ctx context.Context, h *lockedread.Held[stock]) error {
		item := h.Item()
		item.Count++
		_, err := h.Commit(ctx, item)
		return err
	}
	for name, c := range map[string]struct {
		under, then func(context.Context, *lockedread.Held[stock]) error
		more        time.Duration
	}{
		"a commit behind a release":      {func(ctx context.Context, h *lockedread.Held[stock]) error { return h.Release(ctx) }, commit, 0},
		"a release behind a commit":      {commit, func(ctx context.Context, h *lockedread.Held[stock]) error { return h.Release(ctx) }, ddb.Cleanup},
		"an extension behind a commit":   {commit, func(ctx context.Context, h *lockedread.Held[stock]) error { return h.Extend(ctx) }, 0},
		"a delete behind an extension":   {commit, func(ctx context.Context, h *lockedread.Held[stock]) error { return h.Delete(ctx) }, 0},
		"a commit behind another commit": {commit, commit, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			inVirtualTime(t, func(t *testing.T, network fault.Doer) {
				lost, begin := hush(anything, always)
				held := acquire(t, b.over(t, &rig.Mortal{Next: network, Lost: lost}, lockedread.Config{Lease: time.Hour}))
				begin()
				first := make(chan error)
				stop, cancel := context.WithCancel(t.Context())
				go func() { first <- c.under(stop, held) }()
				synctest.Wait()
				ctx, leave := context.WithTimeout(t.Context(), time.Second)
				defer leave()
				began := time.Now()
				err := c.then(ctx, held)
				if rig.Is(t, err, context.DeadlineExceeded); time.Since(began) != time.Second+c.more || errors.Is(err, repo.ErrOutcomeUnknown) {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				cancel()
				if err := <-first; err == nil {
					t.Error("the first one succeeded")
				}
			})
			wantCount(t, b, 10)
		})
	}
}

// TestReleaseAfterItsContext has the three seconds that are promised, not more,
// and a lost answer in them is made good.
func TestReleaseAfterItsContext(t *testing.T) {
	for name, c := range map[string]struct {
		silent int64         // so many of its requests
		leaves time.Duration // when its context ends
		most   time.Duration
		err    bool
	}{
		"nothing is answered":                        {always, 0, ddb.Cleanup, true},
		"nothing is answered, it ends in the middle": {always, time.Second, time.Second + ddb.Cleanup, true},
		"the first is lost":                          {1, 0, ddb.Cleanup, false},
		"the first is lost, it ends in the middle":   {1, time.Second, time.Second + ddb.Cleanup, false},
	} {
		for _, fair := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				b := newBench(t)
				inVirtualTime(t, func(t *testing.T, network fault.Doer) {
					lost, begin := hush(anything, c.silent)
					held := acquire(t, b.over(t, &rig.Mortal{Next: network, Lost: lost}, lockedread.Config{Fair: fair}))
					begin()
					ctx, cancel := context.WithTimeout(t.Context(), c.leaves)
					defer cancel()
					began := time.Now()
					err := held.Release(ctx)
					if took := time.Since(began); took > c.most || (err != nil) != c.err {
						t.Errorf("%v after %v", err, took)
					}
				})
				if !c.err {
					wantClean(t, b)
				}
			})
		}
	}
}

// TestAcquireAfterItsContext: its request is waited for, for a second, and what
// it may have left is given back in three.
func TestAcquireAfterItsContext(t *testing.T) {
	for _, fair := range []bool{false, true} {
		b := newBench(t)
		inVirtualTime(t, func(t *testing.T, network fault.Doer) {
			lost, begin := hush(anything, always)
			l := b.over(t, &rig.Mortal{Next: network, Lost: lost}, lockedread.Config{Fair: fair})
			begin()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, err := l.Acquire(ctx, key)
			rig.Is(t, err, context.DeadlineExceeded)
			if took := time.Since(began); took > 500*time.Millisecond+ddb.Settle+ddb.Cleanup {
				t.Errorf("fair %v: %v after %v", fair, err, took)
			}
		})
	}
}

// TestReleaseThatCouldNotBegin: nobody calls it again, so nobody renews the hold any
// more, although a commit under way has kept the release from being sent.
func TestReleaseThatCouldNotBegin(t *testing.T) {
	b := newBench(t)
	inVirtualTime(t, func(t *testing.T, network fault.Doer) {
		var silent atomic.Bool
		net := &rig.Mortal{Next: network, Lost: func(string, string) (bool, bool) { return silent.Load(), false }}
		held := acquire(t, b.over(t, net, lockedread.Config{Lease: time.Minute, Renew: true}))
		silent.Store(true)
		stop, cancel := context.WithCancel(t.Context())
		committed := make(chan error)
		go func() {
			item := held.Item()
			item.Count++
			_, err := held.Commit(stop, item)
			committed <- err
		}()
		synctest.Wait()
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		rig.Is(t, held.Release(ctx), context.DeadlineExceeded)
		cancel()
		rig.Is(t, <-committed, repo.ErrOutcomeUnknown)
		silent.Store(false)
		rig.Is(t, context.Cause(held.Context()), repo.ErrReleased)
		time.Sleep(5 * time.Minute)
		rig.Is(t, acquire(t, b.over(t, network, lockedread.Config{})).Release(t.Context()))
	})
}
