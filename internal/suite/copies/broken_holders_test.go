package copies_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

// ofHolders are the rows.
var ofHolders = map[string]func(t *testing.T, p *place) heldBy{
	"mutex, fail-open, Unlock":             holdsName(mutex.Config{Mode: mutex.FailOpen}, unlocks),
	"mutex, fail-open, race, Unlock":       holdsName(mutex.Config{Mode: mutex.FailOpen, Race: true}, unlocks),
	"mutex, fail-open, Extend":             keeping(holdsName(mutex.Config{Mode: mutex.FailOpen}, extends)),
	"mutex, fail-open, SetPayload":         holdsName(mutex.Config{Mode: mutex.FailOpen}, notes),
	"mutex, fail-open, race, SetPayload":   holdsName(mutex.Config{Mode: mutex.FailOpen, Race: true}, notes),
	"mutex, fail-closed, Unlock":           deleting(holdsName(mutex.Config{Mode: mutex.FailClosed}, unlocks)),
	"mutex, fail-closed, race, Unlock":     deleting(holdsName(mutex.Config{Mode: mutex.FailClosed, Race: true}, unlocks)),
	"mutex, fail-closed, Extend":           keeping(holdsName(mutex.Config{Mode: mutex.FailClosed}, extends)),
	"mutex, fail-closed, SetPayload":       holdsName(mutex.Config{Mode: mutex.FailClosed}, notes),
	"mutex, fail-closed, race, SetPayload": holdsName(mutex.Config{Mode: mutex.FailClosed, Race: true}, notes),
	"once, completion":                     completes,
	"ticket, Extend":                       keeping(holdsTurn((*ticket.Turn).Extend)),
	"ticket, Done":                         holdsTurn((*ticket.Turn).Done),
	"semaphore, Extend":                    keeping(holdsPermit((*semaphore.Permit).Extend)),
	"semaphore, Release":                   holdsPermit((*semaphore.Permit).Release),
	"job, Done":                            holdsJob((*jobs.Job[int]).Done),
	"job, Fail":                            holdsJob(func(j *jobs.Job[int], ctx context.Context) error { return j.Fail(ctx, errAsked) }),
	"job, Return":                          holdsJob((*jobs.Job[int]).Return),
	"lockedread, Commit":                   holdsItem(false, commits),
	"lockedread, race, Commit":             holdsItem(true, commits),
	"lockedread, Delete":                   deleting(holdsItem(false, removes)),
	"lockedread, race, Delete":             deleting(holdsItem(true, removes)),
	"lockedread, Release":                  holdsItem(false, releasesItem),
	"lockedread, race, Release":            holdsItem(true, releasesItem),
	"lockedread, Extend":                   keeping(holdsItem(false, extendsItem)),
	"txn, one item":                        holdsInTransaction(1, false, false),
	"txn, one item, race":                  holdsInTransaction(1, true, false),
	"txn, one item, deleted":               deleting(holdsInTransaction(1, true, true)),
	"txn, two items":                       holdsInTransaction(2, false, false),
	"txn, two items, race":                 holdsInTransaction(2, true, false),
	"txn, two items, deleted":              deleting(holdsInTransaction(2, true, true)),
}

func unlocks(ctx context.Context, _ *mutex.Locker, l *mutex.Lock) error { return l.Unlock(ctx) }
func extends(ctx context.Context, _ *mutex.Locker, l *mutex.Lock) error { return l.Extend(ctx) }
func notes(ctx context.Context, _ *mutex.Locker, l *mutex.Lock) error {
	return l.SetPayload(ctx, []byte("noted"))
}

func holdsName(cfg mutex.Config, do func(context.Context, *mutex.Locker, *mutex.Lock) error) func(*testing.T, *place) heldBy {
	return func(t *testing.T, p *place) heldBy {
		mine, theirs := lockersOf(t, p, cfg)
		held := rig.Must(mine.TryLock(t.Context(), "door"))(t)
		take := func() *mutex.Lock {
			l, err := theirs.TryLock(t.Context(), "door")
			if err != nil {
				return nil
			}
			return l
		}
		breaks := func() {
			if is, err := theirs.Inspect(t.Context(), "door"); err == nil {
				rig.Is(t, theirs.Break(t.Context(), "door", is.Token))
			}
		}
		h := heldBy{p: p, do: func(ctx context.Context) error { return do(ctx, mine, held) }, steps: map[string]func(){
			"break": breaks, "take": func() { take() },
			"use": func() {
				if l := take(); l != nil {
					rig.Is(t, l.Unlock(t.Context()))
				}
			},
		}}
		if cfg.Mode == mutex.FailOpen {
			h.steps["take over"] = func() { p.later(2 * time.Minute); take() }
		}
		return h
	}
}

func completes(t *testing.T, p *place) heldBy {
	cfg := once.Config{Table: repo.TableConfig{Clock: p.now}}
	theirs := rig.Must(once.New(p.Client, p.Table, cfg))(t)
	rig.Is(t, theirs.EnsureTable(t.Context()))
	mine := rig.Must(once.New(p.client(), p.Table, cfg))(t)
	operator := rig.Must(mutex.New(p.Client, p.Table, mutex.Config{Mode: mutex.FailOpen, Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}, Table: repo.TableConfig{Clock: p.now}}))(t)
	run := func(ctx context.Context, s *once.Store, err error) error {
		_, err = once.Try(ctx, s, "payment", func(context.Context, once.Run) (int, error) { return 1, err })
		return err
	}
	take := func() { _, _ = operator.TryLock(t.Context(), "payment") }
	return heldBy{p: p, nth: 1, do: func(ctx context.Context) error { return run(ctx, mine, nil) }, steps: map[string]func(){
		"break": func() {
			if is, err := operator.Inspect(t.Context(), "payment"); err == nil {
				rig.Is(t, operator.Break(t.Context(), "payment", is.Token))
			}
		},
		"take":      take,
		"take over": func() { p.later(2 * time.Minute); take() },
		"use":       func() { _ = run(t.Context(), theirs, errAsked) },
	}}
}

func keeping(open func(*testing.T, *place) heldBy) func(*testing.T, *place) heldBy {
	return func(t *testing.T, p *place) heldBy {
		h := open(t, p)
		h.keeps = true
		return h
	}
}

func holdsTurn(do func(*ticket.Turn, context.Context) error) func(*testing.T, *place) heldBy {
	return func(t *testing.T, p *place) heldBy {
		mine, theirs := queues(t, p)
		own := rig.Must(mine.TryLock(t.Context(), "printer"))(t)
		take := func() { _, _ = theirs.TryLock(t.Context(), "printer") }
		return heldBy{p: p, do: func(ctx context.Context) error { return do(own, ctx) }, steps: map[string]func(){
			"break": func() {
				for _, e := range rig.Must(theirs.List(t.Context(), "printer"))(t) {
					rig.Is(t, theirs.Break(t.Context(), "printer", e.Number))
				}
			},
			"take":      take,
			"take over": func() { p.later(2 * time.Minute); take() },
			"use": func() {
				if turn, err := theirs.TryLock(t.Context(), "printer"); err == nil {
					rig.Is(t, turn.Done(t.Context()))
				}
			},
		}}
	}
}

func holdsPermit(do func(*semaphore.Permit, context.Context) error) func(*testing.T, *place) heldBy {
	return func(t *testing.T, p *place) heldBy {
		mine, theirs := processes(t, p, jobs.Config{})
		own := rig.Must(mine.TryAcquire(t.Context(), room))(t)
		take := func() { _, _ = theirs.TryAcquire(t.Context(), room) }
		return heldBy{p: p, do: func(ctx context.Context) error { return do(own, ctx) }, steps: map[string]func(){
			"break": func() {
				for _, one := range rig.Must(theirs.Permits(t.Context(), room))(t) {
					rig.Is(t, theirs.BreakPermit(t.Context(), room, one.ID))
				}
			},
			"take":      take,
			"take over": func() { p.later(2 * time.Minute); take() },
			"use": func() {
				if permit, err := theirs.TryAcquire(t.Context(), room); err == nil {
					rig.Is(t, permit.Release(t.Context()))
				}
			},
		}}
	}
}

// deleting is a call that deletes the item: that it is gone is the evidence.
func deleting(open func(*testing.T, *place) heldBy) func(*testing.T, *place) heldBy {
	return func(t *testing.T, p *place) heldBy {
		h := open(t, p)
		h.deletes = true
		return h
	}
}

func holdsJob(do func(*jobs.Job[int], context.Context) error) func(*testing.T, *place) heldBy {
	return func(t *testing.T, p *place) heldBy {
		mine, theirs := processes(t, p, jobs.Config{})
		rig.Must(theirs.Enqueue(t.Context(), room, 1))(t)
		own := job(t, mine)
		var other *jobs.Job[int]
		take := func() {
			p.later(2 * time.Second)
			other = jobOrBusy(t, theirs)
		}
		return heldBy{p: p, do: func(ctx context.Context) error { return do(own, ctx) }, steps: map[string]func(){
			"break": func() {
				token := own.Token()
				if other != nil {
					token = other.Token()
				}
				if err := theirs.BreakJob(t.Context(), room, own.ID(), token); !errors.Is(err, repo.ErrNotHeld) && !errors.Is(err, repo.ErrNotFound) {
					rig.Is(t, err)
				}
			},
			"take":      take,
			"take over": func() { p.later(2 * time.Minute); take() },
			"use": func() {
				if take(); other != nil {
					rig.Is(t, other.Done(t.Context()))
				}
			},
		}}
	}
}

type heldThing = lockedread.Held[thing]

func commits(ctx context.Context, h *heldThing) error {
	item := h.Item()
	item.N++
	_, err := h.Commit(ctx, item)
	return err
}
func removes(ctx context.Context, h *heldThing) error      { return h.Delete(ctx) }
func releasesItem(ctx context.Context, h *heldThing) error { return h.Release(ctx) }
func extendsItem(ctx context.Context, h *heldThing) error  { return h.Extend(ctx) }

func holdsItem(race bool, do func(context.Context, *heldThing) error) func(*testing.T, *place) heldBy {
	return func(t *testing.T, p *place) heldBy {
		steps := itemsOf(t, p, race)
		mine := rig.Must(lockedread.New(rig.Must(repo.NewTable[thing](p.client(), p.Table, repo.TableConfig{Clock: p.now}))(t), lockedread.Config{Race: race}))(t)
		held := rig.Must(mine.Acquire(t.Context(), thingKey("a")))(t)
		return heldBy{p: p, do: func(ctx context.Context) error { return do(ctx, held) }, steps: steps}
	}
}

// itemsOf makes two items, of which others use the first.
func itemsOf(t *testing.T, p *place, race bool) map[string]func() {
	table := rig.Must(repo.NewTable[thing](p.Client, p.Table, repo.TableConfig{Clock: p.now}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	theirs := rig.Must(lockedread.New(table, lockedread.Config{Race: race}))(t)
	makes := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	for _, id := range []string{"a", "b"} {
		rig.Must(makes.Create(t.Context(), thing{ID: id}))(t)
	}
	take := func() { _, _ = theirs.TryAcquire(t.Context(), thingKey("a")) }
	return map[string]func(){
		"break": func() {
			if is, err := table.Inspect(t.Context(), thingKey("a")); err == nil && is.Token > 0 {
				rig.Is(t, theirs.Break(t.Context(), thingKey("a"), is.Token))
			}
		},
		"take":      take,
		"take over": func() { p.later(2 * time.Minute); take() },
		"use": func() {
			for range 10 {
				if h, err := theirs.TryAcquire(t.Context(), thingKey("a")); err == nil {
					item := h.Item()
					item.Others++
					rig.Must(h.Commit(t.Context(), item))(t)
				}
			}
		},
	}
}

func holdsInTransaction(items int, race, remove bool) func(*testing.T, *place) heldBy {
	return func(t *testing.T, p *place) heldBy {
		steps := itemsOf(t, p, race)
		mine := rig.Must(pessimistic.New(rig.Must(repo.NewTable[thing](p.client(), p.Table, repo.TableConfig{Clock: p.now}))(t), pessimistic.Config{Race: race}))(t)
		change := func(ctx context.Context, v *thing) error {
			if v.N++; remove {
				return repo.Remove
			}
			return nil
		}
		return heldBy{p: p, nth: items, steps: steps, do: func(ctx context.Context) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				for _, id := range []string{"a", "b"}[:items] {
					if _, err := mine.In(tx).Update(ctx, thingKey(id), change); err != nil {
						return err
					}
				}
				return nil
			})
		}}
	}
}
