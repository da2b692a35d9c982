package mutex_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// Waiters in the queue that die or lose messages, in virtual time.

// over is a locker with a network of its own.
func (b bench) over(t *testing.T, network fault.Doer, cfg mutex.Config) *mutex.Locker {
	return rig.Must(mutex.New(rig.Client(rig.Over(network)), b.Table, cfg))(t)
}

// Nobody takes a fail-closed lock over from a dead holder, however it came to it and
// however long they wait, until an operator breaks it: then the first in the queue has it.
func TestFairClosedWaitsForADeadHolder(t *testing.T) {
	t.Parallel()
	for name, waited := range map[string]bool{"it was alone": false, "it came through the queue": true} {
		for _, clockless := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				b, cfg := newBench(t), mutex.Config{Fair: true, Clockless: clockless}
				rig.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
					net := &rig.Mortal{Next: network, Latency: 2 * time.Millisecond}
					var first *mutex.Lock
					if waited {
						first = rig.Must(b.over(t, network, cfg).Lock(t.Context(), "printer"))(t)
					}
					got := make(chan *mutex.Lock, 1)
					dead := b.over(t, net, cfg)
					go func() { got <- rig.Must(dead.Lock(t.Context(), "printer"))(t) }()
					time.Sleep(100 * time.Millisecond) // in virtual time: it has enqueued
					if waited {
						rig.Is(t, first.Unlock(t.Context()))
					}
					held := <-got
					net.Dead.Store(true) // the moment that it has the lock

					next := b.over(t, network, cfg)
					ctx, leave := context.WithTimeout(t.Context(), rig.Share(2*time.Minute, 10*time.Minute)) // many leases
					defer leave()
					_, err := next.Lock(ctx, "printer")
					rig.Is(t, err, repo.ErrLocked, context.DeadlineExceeded)
					go func() { got <- rig.Must(next.Lock(t.Context(), "printer"))(t) }()
					time.Sleep(time.Second)
					rig.Is(t, b.over(t, network, cfg).Break(t.Context(), "printer", held.Token()))
					lock := <-got
					if lock.Token() <= held.Token() {
						t.Errorf("token %d after %d", lock.Token(), held.Token())
					}
					rig.Is(t, lock.Unlock(t.Context()))
				})
				wantEnded(t, b, cfg, "printer")
			})
		}
	}
}

// A waiter that hears nothing of its claim gives up in time, and gives the lock on:
// whether the claim has landed or not.
func TestFairClaimsWithoutAnswer(t *testing.T) {
	for name, arrives := range map[string]bool{"they are lost": false, "their answers are": true} {
		t.Run(name, func(t *testing.T) {
			b, cfg := newBench(t), mutex.Config{Fair: true}
			rig.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
				held := rig.Must(b.over(t, network, cfg).Lock(t.Context(), "printer"))(t)
				deaf := &rig.Mortal{Next: network, Lost: func(_, body string) (bool, bool) {
					lost := strings.Contains(body, "SET #lockedBy = :id")
					return lost && !arrives, lost && arrives
				}}
				gone := make(chan error, 1)
				go func() {
					l, err := b.over(t, deaf, cfg).Lock(t.Context(), "printer")
					if l != nil {
						t.Error("it has the lock")
					}
					gone <- err
				}()
				time.Sleep(100 * time.Millisecond)
				got := make(chan *mutex.Lock, 1)
				go func() { got <- rig.Must(b.over(t, network, cfg).Lock(t.Context(), "printer"))(t) }()
				time.Sleep(100 * time.Millisecond)
				from := time.Now()
				rig.Is(t, held.Unlock(t.Context()))
				next := <-got
				took := time.Since(from)
				if err := <-gone; err == nil {
					t.Error("no error")
				}
				// What was not confirmed ends with its grace; else who has confirmed it gives it
				// on when it gives up, after ten attempts.
				if limit := map[bool]time.Duration{false: 2 * time.Second, true: 90 * time.Second}[arrives]; took > limit {
					t.Errorf("the next one has it after %v", took)
				}
				rig.Is(t, next.Unlock(t.Context()))
			})
			wantEnded(t, b, cfg, "printer")
		})
	}
}

// The claim of one who has given up lands in the very moment in which it gives the lock
// back: the lock is not left without a holder.
func TestFairClaimThatLandsLate(t *testing.T) {
	b, cfg := newBench(t), mutex.Config{Fair: true}
	held := rig.Must(b.locker(t, cfg).Lock(t.Context(), "printer"))(t)
	var claim *dynamodb.UpdateItemInput
	deaf := &rig.Intercept{Client: rig.Client(), Update: func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		if strings.Contains(*in.UpdateExpression, "SET #lockedBy = :id") {
			claim = in
			return nil, rig.ErrNoAnswer
		}
		return send()
	}, Delete: func(n int, _ *dynamodb.DeleteItemInput, send func() (*dynamodb.DeleteItemOutput, error)) (*dynamodb.DeleteItemOutput, error) {
		if n == 1 {
			rig.Must(rig.Client().UpdateItem(t.Context(), claim))(t)
		}
		return send()
	}}
	l, gone := rig.Must(mutex.New(deaf, b.Table, cfg))(t), make(chan error, 1)
	go func() {
		_, err := l.Lock(soon(t), "printer")
		gone <- err
	}()
	b.queued(t, "printer", 2)
	rig.Is(t, held.Unlock(t.Context()))
	if err := <-gone; err == nil {
		t.Error("no error")
	}
	wantEnded(t, b, cfg, "printer")
}

// The transfer of a fail-closed lock was applied and its answer lost, and the next holder
// has deleted the row since: the unlock is done.
func TestFairTransferWhoseRowHasGone(t *testing.T) {
	b, cfg := newBench(t), mutex.Config{Fair: true}
	rig.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		var transfers atomic.Int32
		holder := &rig.Mortal{Next: network, Lost: func(_, body string) (bool, bool) {
			return false, strings.Contains(body, "next#") && transfers.Add(1) == 1
		}}
		held := rig.Must(b.over(t, holder, cfg).Lock(t.Context(), "printer"))(t)
		next, done := b.over(t, network, cfg), make(chan error, 1)
		go func() {
			done <- next.Do(t.Context(), "printer", func(context.Context, *mutex.Lock) error { return nil })
		}()
		time.Sleep(100 * time.Millisecond) // in virtual time: it has enqueued
		rig.Is(t, held.Unlock(t.Context()))
		rig.Is(t, <-done)
		rig.Equal(t, transfers.Load(), 2, "transfers")
	})
	wantEnded(t, b, cfg, "printer")
}

// A process that has let the lock go to the queue enters it at once, and does not stay away
// first, as it does without Fair: the queue knows whose turn it is.
func TestFairProcessDoesNotStayAway(t *testing.T) {
	eachFair(t, func(t *testing.T, b bench, cfg mutex.Config) {
		rig.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
			var mu sync.Mutex
			var handed time.Time
			away := time.Duration(-1)
			net := &rig.Mortal{Next: network, Lost: func(_, body string) (bool, bool) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case strings.Contains(body, "next#") && strings.Contains(body, "lockToken"):
					handed = time.Now()
				case strings.Contains(body, "SET #lockQueue") && !handed.IsZero() && away < 0:
					away = time.Since(handed)
				}
				return false, false
			}}
			other, group := b.over(t, network, cfg), b.over(t, net, cfg)
			held := rig.Must(other.Lock(t.Context(), "printer"))(t)
			var all sync.WaitGroup
			work := func(context.Context, *mutex.Lock) error { time.Sleep(time.Millisecond); return nil }
			take := func(l *mutex.Locker) {
				all.Go(func() { rig.Is(t, l.Do(t.Context(), "printer", work)) })
				time.Sleep(20 * time.Millisecond) // in virtual time: it stands in line
			}
			for range 12 { // more than have it one after the other
				take(group)
			}
			take(b.over(t, network, cfg))
			rig.Is(t, held.Unlock(t.Context()))
			all.Wait()
			if away < 0 || away >= 5*time.Millisecond {
				t.Errorf("it stays away for %v", away)
			}
		})
		wantEnded(t, b, cfg, "printer")
	})
}
