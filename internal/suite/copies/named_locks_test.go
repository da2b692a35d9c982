package copies_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
)

// calls are the rows of the matrix.
var calls = map[string]call{
	"mutex, fail-open, Lock":   {denied: holds, open: lockOf(mutex.FailOpen), lands: map[moment]string{ended: aLease, lapsed: aLease, anew: aLease, refused: aLease}},
	"mutex, fail-closed, Lock": {open: lockOf(mutex.FailClosed), lands: map[moment]string{ended: said, lapsed: said, anew: said, refused: said}},
	"mutex, fail-open, Unlock": {open: unlockOf(mutex.FailOpen)},
	"mutex, fail-closed, Unlock": {open: unlockOf(mutex.FailClosed),
		told: map[moment]repo.Verdict{atOnce: repo.Unknown, behind: repo.Unknown, conflict: repo.Unknown}},
	"mutex, fail-open, Extend":       {open: extendOf(mutex.Config{Mode: mutex.FailOpen})},
	"mutex, fail-open, race, Extend": {open: extendOf(mutex.Config{Mode: mutex.FailOpen, Race: true})},
	"mutex, fail-open, SetPayload":   {open: payloadOf(mutex.FailOpen)},
	"mutex, fail-closed, SetPayload": {open: payloadOf(mutex.FailClosed)},
	"mutex, fail-open, Break":        {open: breakOf(mutex.FailOpen)},
	"mutex, fail-closed, Break":      {open: breakOf(mutex.FailClosed), told: map[moment]repo.Verdict{behind: repo.Unknown}},
	"mutex, fail-open, Release": {open: releaseOf(mutex.FailOpen), // without a read before it: it says who holds the lock now
		told: map[moment]repo.Verdict{atOnce: repo.Unknown, behind: repo.NotWritten, conflict: repo.Unknown}},
	"mutex, fail-closed, Release": {open: releaseOf(mutex.FailClosed), told: map[moment]repo.Verdict{behind: repo.Unknown}},

	"once, Do":  {denied: takes, open: doOnce(once.Do[int], false), lands: map[moment]string{anew.of(0): aLease}},
	"once, Try": {denied: takes, open: doOnce(once.Try[int], false), lands: map[moment]string{anew.of(0): aLease}},
	"once, Do that fails": {denied: gives, open: doOnce(once.Do[int], true), lands: map[moment]string{goingOn.of(0): aLease, ended.of(0): aLease, lapsed.of(0): aLease, anew.of(0): aLease},
		told: map[moment]repo.Verdict{atOnce: repo.NotWritten, behind: repo.NotWritten, conflict: repo.NotWritten}},

	"ticket, Join":    {denied: holds, open: joins, lands: map[moment]string{ended: aLease, lapsed: aLease, anew: aLease}},
	"ticket, TryLock": {denied: holds, open: triesTicket, lands: map[moment]string{ended: aLease, lapsed: aLease, anew: aLease, refused: aLease}},
	"ticket, Extend":  {open: extendsTurn},
	"ticket, Done":    {open: endsTurn},
	"ticket, Break":   {open: breaksTicket},
}

// lockers are a process whose requests are copied and another one, on one name.
func lockers(t *testing.T, p *place, mode mutex.Mode) (mine, theirs *mutex.Locker) {
	return lockersOf(t, p, mutex.Config{Mode: mode})
}

func lockersOf(t *testing.T, p *place, cfg mutex.Config) (mine, theirs *mutex.Locker) {
	cfg.Table = repo.TableConfig{Clock: p.now}
	theirs = rig.Must(mutex.New(p.Client, p.Table, cfg))(t)
	rig.Is(t, theirs.EnsureTable(t.Context()))
	mine = rig.Must(mutex.New(p.client(), p.Table, cfg))(t)
	_, err := mine.Inspect(t.Context(), "window")
	rig.Is(t, err, repo.ErrNotHeld) // and its credentials have been good before
	return mine, theirs
}

// wipe deletes the row of a key.
func (p *place) wipe(t *testing.T, name, key string) {
	t.Helper()
	_, err := rig.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &p.Table, Key: map[string]types.AttributeValue{name: &types.AttributeValueMemberS{Value: key}}})
	rig.Is(t, err)
}

func lockOf(mode mutex.Mode) func(*testing.T, *place) stage {
	return locksBy(mode, (*mutex.Locker).TryLock)
}

// locksBy takes a lock by one of the calls for that: Lock sends what enters the queue.
func locksBy(mode mutex.Mode, take func(*mutex.Locker, context.Context, any) (*mutex.Lock, error)) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := lockers(t, p, mode)
		var held, other *mutex.Lock
		return stage{
			do: func(ctx context.Context) (err error) { held, err = take(mine, ctx, "door"); return err },
			others: func(int) {
				if l, err := theirs.TryLock(t.Context(), "door"); err == nil {
					t.Error("two hold", l.Unlock(t.Context()))
				}
			},
			goesOn: func() {
				if mode == mutex.FailOpen {
					rig.Is(t, held.Extend(t.Context()))
				}
			},
			block: func() { other = rig.Must(theirs.TryLock(t.Context(), "door"))(t) },
			free:  func() { rig.Is(t, other.Unlock(t.Context())) },
			end:   func() { rig.Is(t, held.Unlock(t.Context())) },
			anew:  func() { p.wipe(t, "name", "door") },
			check: func(t testing.TB, told repo.Verdict) {
				if _, err := theirs.TryLock(t.Context(), "door"); err == nil {
					t.Error("two hold")
				}
				rig.Is(t, held.Unlock(t.Context()))
				rig.Is(t, rig.Must(theirs.TryLock(t.Context(), "door"))(t).Unlock(t.Context()))
			},
			over: func(t testing.TB) {
				if mode == mutex.FailOpen {
					rig.Is(t, rig.Must(theirs.TryLock(t.Context(), "door"))(t).Unlock(t.Context()))
					return
				}
				info := rig.Must(theirs.Inspect(t.Context(), "door"))(t)
				rig.Is(t, theirs.Break(t.Context(), "door", info.Token))
			},
		}
	}
}

func unlockOf(mode mutex.Mode) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := lockers(t, p, mode)
		held := rig.Must(mine.TryLock(t.Context(), "door"))(t)
		s := afterwards(t, p, mode, mine, theirs)
		s.do = func(ctx context.Context) error { return held.Unlock(ctx) }
		return s
	}
}

func extendOf(cfg mutex.Config) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := lockersOf(t, p, cfg)
		held := rig.Must(mine.TryLock(t.Context(), "door"))(t)
		return stage{
			do: func(ctx context.Context) error { p.later(time.Second); return held.Extend(ctx) },
			others: func(int) {
				if _, err := theirs.TryLock(t.Context(), "door"); err == nil {
					t.Error("two hold")
				}
			},
			goesOn: func() { p.later(time.Second); rig.Is(t, held.Extend(t.Context())) },
			end:    func() { rig.Is(t, held.Unlock(t.Context())) },
			anew:   func() { p.wipe(t, "name", "door"); rig.Must(theirs.TryLock(t.Context(), "door"))(t) },
			check:  func(t testing.TB, _ repo.Verdict) { rig.Is(t, held.Unlock(t.Context())) },
		}
	}
}

func payloadOf(mode mutex.Mode) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := lockers(t, p, mode)
		held := rig.Must(mine.TryLock(t.Context(), "door"))(t)
		is := func(t testing.TB, want string) {
			if got := rig.Must(theirs.Inspect(t.Context(), "door"))(t).Payload; string(got) != want {
				t.Errorf("payload %q, want %q", got, want)
			}
		}
		n := 0
		return stage{
			do: func(ctx context.Context) error { n++; return held.SetPayload(ctx, fmt.Appendf(nil, "%d", n)) },
			goesOn: func() {
				for range 3 {
					n++
					rig.Is(t, held.SetPayload(t.Context(), fmt.Appendf(nil, "%d", n)))
				}
				rig.Is(t, held.SetPayload(t.Context(), nil))
			},
			end:   func() { rig.Is(t, held.Unlock(t.Context())) },
			anew:  func() { p.wipe(t, "name", "door"); rig.Must(theirs.TryLock(t.Context(), "door"))(t) },
			check: func(t testing.TB, _ repo.Verdict) { is(t, "1"); rig.Is(t, held.Unlock(t.Context())) },
		}
	}
}

func breakOf(mode mutex.Mode) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := lockers(t, p, mode)
		held := rig.Must(theirs.TryLock(t.Context(), "door"))(t)
		s := afterwards(t, p, mode, mine, theirs)
		s.do = func(ctx context.Context) error { return mine.Break(ctx, "door", held.Token()) }
		return s
	}
}

// afterwards is what happens behind a call that ends a hold: others come and go.
func afterwards(t *testing.T, p *place, mode mutex.Mode, mine, theirs *mutex.Locker) stage {
	var next *mutex.Lock
	return stage{
		others: func(i int) {
			if next != nil {
				rig.Is(t, next.Unlock(t.Context()))
			}
			next = rig.Must(theirs.TryLock(t.Context(), "door"))(t)
		},
		goesOn: func() { next = rig.Must(theirs.TryLock(t.Context(), "door"))(t) },
		end:    func() { next = rig.Must(mine.TryLock(t.Context(), "door"))(t) },
		anew: func() {
			if next != nil {
				rig.Is(t, next.Unlock(t.Context()))
			}
			p.wipe(t, "name", "door")
			next = rig.Must(theirs.TryLock(t.Context(), "door"))(t)
		},
		check: func(t testing.TB, _ repo.Verdict) {
			if next == nil {
				next = rig.Must(theirs.TryLock(t.Context(), "door"))(t)
			}
			if rig.Must(theirs.Inspect(t.Context(), "door"))(t).Token != next.Token() {
				t.Error("a copy has ended the hold of who came after")
			}
		},
	}
}

func releaseOf(mode mutex.Mode) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		mine, theirs := lockers(t, p, mode)
		held := rig.Must(theirs.TryLock(t.Context(), "door"))(t)
		s := afterwards(t, p, mode, mine, theirs)
		s.do = func(ctx context.Context) error { return mine.Release(ctx, "door", held.ID()) }
		return s
	}
}

// runOnce is once.Do or once.Try.
type runOnce func(context.Context, *once.Store, string, func(context.Context, once.Run) (int, error)) (int, error)

func doOnce(run runOnce, fails bool) func(*testing.T, *place) stage {
	return func(t *testing.T, p *place) stage {
		cfg := once.Config{Table: repo.TableConfig{Clock: p.now}}
		theirs := rig.Must(once.New(p.Client, p.Table, cfg))(t)
		rig.Is(t, theirs.EnsureTable(t.Context()))
		mine := rig.Must(once.New(p.client(), p.Table, cfg))(t)
		_ = rig.Must(run(t.Context(), mine, "another", func(context.Context, once.Run) (int, error) { return 0, nil }))(t) // its credentials have been good before
		runs := 0
		do := func(ctx context.Context, s *once.Store) error {
			_, err := run(ctx, s, "payment", func(context.Context, once.Run) (int, error) {
				if runs++; fails && s == mine {
					return 0, errAsked
				}
				return runs, nil
			})
			return err
		}
		s := stage{
			do:   func(ctx context.Context) error { return do(ctx, mine) },
			end:  func() {},
			anew: func() { p.wipe(t, "id", "payment") },
			check: func(t testing.TB, told repo.Verdict) {
				before := runs
				rig.Is(t, do(t.Context(), theirs))
				rig.Equal(t, runs > before, fails, "it runs again")
			},
			over: func(t testing.TB) { rig.Is(t, do(t.Context(), theirs)) },
		}
		return s
	}
}
