package semaphore_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// What becomes of a permit, and of who is to have it, where the request that passes it
// on has no answer.

// inDoubt is a setting under which the requests of a Release follow each other soon.
var inDoubt = semaphore.Config{Lease: time.Hour, Table: repo.TableConfig{AttemptTimeout: 100 * time.Millisecond}}

// releaseInDoubt gives a permit back, which is passed on without an answer.
func (p *process) releaseInDoubt(t *testing.T, permit *semaphore.Permit) {
	t.Helper()
	p.lose(func(body string) (before, after bool) { return false, passes(body) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	rig.Is(t, permit.Release(ctx), repo.ErrOutcomeUnknown)
	p.lose(nil)
}

// Whoever waits no longer, and may have been passed a permit, leaves nothing: the one
// that has passed it on gives it back for it, or it does so itself.
func TestLeavingWhileAPermitMayHaveBeenPassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		leaves time.Duration
		first  bool
		pause  time.Duration
	}{
		"before the release has ended": {100 * time.Millisecond, true, 0},
		"after it":                     {3500 * time.Millisecond, false, 0}, // it waits for a second more
		// Its last request is not sent any more, and was not applied: an earlier one may have been.
		"after one that ends in a pause between two requests": {3500 * time.Millisecond, false, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := inDoubt
			cfg.Wait = repo.Wait{Min: c.pause, Max: c.pause}
			besideAnother(t, cfg, func(t *testing.T, p, other *process) {
				first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
				ctx, cancel := context.WithCancel(t.Context())
				second := p.acquire(ctx)
				time.AfterFunc(c.leaves, cancel)
				p.releaseInDoubt(t, first)
				rig.Equal(t, len(second) > 0, c.first, "it has left before")
				rig.Is(t, (<-second).err, semaphore.ErrBusy, context.Canceled)
				time.Sleep(3 * time.Second) // the last request goes on beside the calls
				wantNone(t, other.s)
			})
		})
	}
}

// Whoever leaves, and finds that it was passed a permit, gives it back.
func TestFindingAPermitWhileLeaving(t *testing.T) {
	besideAnother(t, inDoubt, func(t *testing.T, p, other *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		ctx, cancel := context.WithCancel(t.Context())
		second := p.acquire(ctx)
		p.lose(func(body string) (before, after bool) {
			cancel()
			p.lose(nil)
			return false, true
		})
		rig.Is(t, first.Release(t.Context()))
		rig.Is(t, (<-second).err, context.Canceled)
		wantNone(t, other.s)
	})
}

// Whoever goes on waiting finds what it may have been passed, and keeps it.
func TestAPermitThatMayHaveBeenPassedOnIsFound(t *testing.T) {
	besideAnother(t, inDoubt, func(t *testing.T, p, other *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		second := p.acquire(t.Context())
		p.releaseInDoubt(t, first)
		got := <-second
		rig.Is(t, got.err)
		time.Sleep(5 * time.Second)
		if held := rig.Must(other.s.Permits(t.Context(), "printer"))(t); len(held) != 1 || held[0].ID != got.permit.ID() {
			t.Errorf("%v are held, want %s", held, got.permit.ID())
		}
		rig.Is(t, got.permit.Release(t.Context()))
		wantNone(t, other.s)
	})
}

// A permit that was passed on without an answer has a token of its own, whatever others
// were given before that was found out.
func TestTheTokenOfAPermitPassedOnWithoutAnAnswer(t *testing.T) {
	cfg := inDoubt
	cfg.Limit = 2
	besideAnother(t, cfg, func(t *testing.T, p, other *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		beside := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		second := p.acquire(t.Context())
		var lost atomic.Bool
		p.lose(func(body string) (before, after bool) { return false, passes(body) && lost.CompareAndSwap(false, true) })
		ends := make(chan error)
		go func() { ends <- first.Release(t.Context()) }()
		time.Sleep(50 * time.Millisecond)
		rig.Is(t, beside.Release(t.Context()))
		theirs := rig.Must(other.s.Acquire(t.Context(), "printer"))(t)
		if !lost.Load() || len(ends)+len(second) > 0 {
			t.Error("the answer was not lost")
		}
		rig.Is(t, <-ends)
		got := <-second
		rig.Is(t, got.err)
		if got.permit.Token() <= theirs.Token() {
			t.Errorf("token %d after %d", got.permit.Token(), theirs.Token())
		}
		rig.Is(t, theirs.Release(t.Context()))
		rig.Is(t, got.permit.Release(t.Context()))
		wantNone(t, p.s)
	})
}

// A Release whose lease ends before it has an answer is told that it has passed its permit
// on: nobody else can have given it to who has it.
func TestAReleaseLearnsLateThatItHasPassedOn(t *testing.T) {
	cfg := semaphore.Config{Lease: 3 * time.Second, Table: repo.TableConfig{AttemptTimeout: time.Second}}
	besideAnother(t, cfg, func(t *testing.T, p, _ *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		second := p.acquire(t.Context())
		began := time.Now()
		p.lose(func(body string) (before, after bool) {
			if took := time.Since(began); passes(body) && took > 2*time.Second {
				time.Sleep(900 * time.Millisecond)
				return false, false
			}
			return false, passes(body)
		})
		rig.Is(t, first.Release(t.Context()))
		if left := time.Until(first.Until()); left > 0 {
			t.Errorf("its lease lasts for %v", left)
		}
		p.lose(nil)
		serve(t, first, second)
		wantNone(t, p.s)
	})
}

// Whoever is passed a permit believes in it from when that was sent, however late it
// hears of it: its process is dead before others take it over.
func TestTheDeadlineOfAPermitThatIsPassedOnLate(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: 10 * time.Second, ClockSkew: -1}, func(t *testing.T, p, other *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		second := p.acquire(t.Context())
		p.lose(func(body string) (before, after bool) {
			if passes(body) {
				time.Sleep(3 * time.Second)
			}
			return false, false
		})
		rig.Is(t, first.Release(t.Context()))
		got := <-second
		rig.Is(t, got.err)
		p.net.Dead.Store(true)
		theirs := rig.Must(other.s.Acquire(t.Context(), "printer"))(t)
		if got.permit.Context().Err() == nil {
			t.Errorf("two have a permit: one until %v, the other since %v", got.permit.Until(), time.Now())
		}
		rig.Is(t, theirs.Release(t.Context()))
		p.net.Dead.Store(false)
		rig.Is(t, got.permit.Release(t.Context()), repo.ErrLockLost)
		wantNone(t, other.s)
	})
}

// The evidence that a permit was broken is believed by who was passed it, also if it had
// to find that out.
func TestAPermitThatWasPassedOnAndBroken(t *testing.T) {
	for name, loses := range map[string]bool{"it was told": false, "it has found it": true} {
		t.Run(name, func(t *testing.T) {
			besideAnother(t, inDoubt, func(t *testing.T, p, other *process) {
				first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
				second := p.acquire(t.Context())
				var lost atomic.Bool
				p.lose(func(body string) (before, after bool) {
					return false, loses && passes(body) && lost.CompareAndSwap(false, true)
				})
				rig.Is(t, first.Release(t.Context()))
				got := <-second
				rig.Is(t, got.err)
				rig.Is(t, other.s.BreakPermit(t.Context(), "printer", got.permit.ID()))
				rig.Is(t, got.permit.Release(t.Context()), repo.ErrLockLost)
				wantNone(t, other.s)
			})
		})
	}
}

// A late copy of the Acquire brings a permit back that was passed on, and a late copy of
// the request that passed it on gives it once more to whoever had it. So that one does not
// know what evidence against it means, where the Acquire had a first try without an answer.
func TestEvidenceAgainstAPermitThatCanComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		loses bool
		want  error
	}{"taken at once": {false, repo.ErrLockLost}, "taken with a second request": {true, repo.ErrOutcomeUnknown}} {
		t.Run(name, func(t *testing.T) {
			besideAnother(t, inDoubt, func(t *testing.T, p, other *process) {
				var lost atomic.Bool
				p.lose(func(body string) (before, after bool) {
					return c.loses && asks(body) && lost.CompareAndSwap(false, true), false
				})
				first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
				second, third := p.acquire(t.Context()), p.acquire(t.Context())
				rig.Is(t, first.Release(t.Context()))
				rig.Is(t, (<-second).permit.Release(t.Context()))
				got := <-third
				rig.Is(t, got.err)
				rig.Is(t, other.s.BreakPermit(t.Context(), "printer", got.permit.ID()))
				rig.Is(t, got.permit.Release(t.Context()), c.want)
				wantNone(t, other.s)
			})
		})
	}
}

// A caller that may have had a permit already, which an operator has broken since, is not
// passed one: it could not tell by which of the two that evidence is meant.
func TestWhoMayHaveHadAPermitIsNotPassedOne(t *testing.T) {
	cfg := inDoubt
	cfg.Limit = 2
	besideAnother(t, cfg, func(t *testing.T, p, other *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		var lost, passed atomic.Bool
		p.lose(func(body string) (before, after bool) { return false, asks(body) && lost.CompareAndSwap(false, true) })
		second := p.acquire(t.Context())
		time.Sleep(50 * time.Millisecond) // it has one, and does not know it
		for _, held := range rig.Must(other.s.Permits(t.Context(), "printer"))(t) {
			if held.ID != first.ID() {
				rig.Is(t, other.s.BreakPermit(t.Context(), "printer", held.ID))
			}
		}
		theirs := rig.Must(other.s.Acquire(t.Context(), "printer"))(t)
		time.Sleep(2 * time.Second) // it is refused, again and again
		p.lose(func(body string) (before, after bool) {
			if passes(body) {
				passed.Store(true)
			}
			return false, false
		})
		rig.Is(t, first.Release(t.Context()))
		got := <-second
		rig.Is(t, got.err)
		if passed.Load() {
			t.Error("it was passed on")
		}
		p.lose(func(body string) (before, after bool) { // the first answer is lost
			p.lose(nil)
			return false, true
		})
		rig.Is(t, got.permit.Release(t.Context()), repo.ErrOutcomeUnknown)
		rig.Is(t, theirs.Release(t.Context()))
		wantNone(t, other.s)
	})
}

// A permit that an earlier try has taken, late, is kept from its own end on: where the clock
// was set back since, that is later than the end of the try that has found it.
func TestAPermitOfAnEarlierTryAfterTheClockWasSetBack(t *testing.T) {
	besideAnother(t, inDoubt, func(t *testing.T, p, other *process) {
		theirs := rig.Must(other.s.Acquire(t.Context(), "printer"))(t)
		copies := fault.NewCopier(p.net.Next)
		p.net.Next = copies
		var first *fault.Copy
		var landed atomic.Bool
		copies.On(func(one *fault.Copy) (*http.Response, error) {
			switch {
			case !asks(string(one.Body)):
			case first == nil:
				first = one
				p.s.SetClock(-2 * inDoubt.Lease)
				return nil, syscall.ECONNRESET
			case !bytes.Equal(one.Body, first.Body) && landed.CompareAndSwap(false, true):
				rig.Is(t, theirs.Release(t.Context()))
				rig.Must(first.Deliver())(t)
			}
			return nil, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got := <-p.acquire(ctx)
		rig.Is(t, got.err)
		if sent := p.sent.Load(); !landed.Load() || sent > 10 {
			t.Errorf("landed: %v, after %d requests", landed.Load(), sent)
		}
		if got.permit != nil {
			rig.Is(t, got.permit.Extend(t.Context()))
			rig.Is(t, got.permit.Release(t.Context()))
		}
		wantNone(t, other.s)
	})
}

// A permit whose end something else has moved, before its token was drawn, is not ours any
// more, as at a renewal: it was asked for again and again, without a pause.
func TestAPermitWhoseEndOthersMove(t *testing.T) {
	besideAnother(t, inDoubt, func(t *testing.T, p, other *process) {
		copies := fault.NewCopier(p.net.Next)
		p.net.Next = copies
		var taken, moved atomic.Bool
		copies.On(func(one *fault.Copy) (*http.Response, error) {
			switch {
			case asks(string(one.Body)) && taken.CompareAndSwap(false, true):
				rig.Must(one.Deliver())(t)
				return nil, syscall.ECONNRESET
			case taken.Load() && one.Op == "UpdateItem" && !asks(string(one.Body)) && moved.CompareAndSwap(false, true):
				id := rig.Must(other.s.Permits(context.Background(), "printer"))(t)[0].ID
				rig.Must(other.Client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
					TableName: &p.Table, Key: resources.Key("printer"),
					UpdateExpression: aws.String("SET #p = :e"), ExpressionAttributeNames: map[string]string{"#p": resources.PermitPrefix + id},
					ExpressionAttributeValues: map[string]types.AttributeValue{":e": &types.AttributeValueMemberN{Value: "9999999999"}},
				}))(t)
			}
			return nil, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		got := <-p.acquire(ctx)
		rig.Is(t, got.err, repo.ErrLockLost)
		if sent := p.sent.Load(); !moved.Load() || sent > 10 {
			t.Errorf("moved: %v, after %d requests", moved.Load(), sent)
		}
	})
}

// A client that panics where a permit is passed on harms nobody who waits for one.
func TestPassingAPermitOnByAClientThatPanics(t *testing.T) {
	for name, delivered := range map[string]bool{"before": false, "behind it": true} {
		t.Run(name, func(t *testing.T) {
			besideAnother(t, inDoubt, func(t *testing.T, p, other *process) {
				first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
				second := p.acquire(t.Context())
				copies := fault.NewCopier(p.net.Next)
				p.net.Next = copies
				copies.On(func(one *fault.Copy) (*http.Response, error) {
					if !passes(string(one.Body)) {
						return nil, nil
					}
					if delivered {
						rig.Must(one.Deliver())(t)
					}
					panic("the client")
				})
				func() {
					defer func() { _ = recover() }()
					_ = first.Release(t.Context())
				}()
				if cause := context.Cause(first.Context()); !errors.Is(cause, repo.ErrReleased) {
					t.Errorf("its context has ended with %v", cause)
				}
				copies.On(nil)
				rig.Is(t, first.Release(t.Context()))
				time.Sleep(time.Minute)
				if len(second) == 0 {
					t.Fatal("the next one waits")
				}
				serve(t, first, second)
				wantNone(t, other.s)
			})
		})
	}
}
