package faults_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// A write whose answer is lost, and which others cover by more writes than the ring has
// places before it is sent again: if they are callers of the same process, what they saw
// is the evidence. They write by another strategy, since those of the same one stand in
// line.
func TestTheProcessIsAWitness(t *testing.T) {
	t.Parallel()
	type calls struct {
		versions *optimistic.Repository[fixture.Account]
		events   *nolock.Repository[fixture.Account]
		item     fixture.Account
	}
	for _, mine := range []struct {
		name string
		// bound: what it has read must be as it was, so that it can be shown, too, that it
		// was not applied.
		bound bool
		write func(ctx context.Context, c *calls) error
	}{
		{"optimistic", true, func(ctx context.Context, c *calls) error {
			_, err := c.versions.Update(ctx, fixture.Key, addOp("mine"))
			return err
		}},
		{"nolock", true, func(ctx context.Context, c *calls) error {
			_, err := c.events.Update(ctx, fixture.Key, addOp("mine"))
			return err
		}},
		{"a transaction", true, func(ctx context.Context, c *calls) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				_, err := c.versions.In(tx).Update(ctx, fixture.Key, addOp("mine"))
				return err
			})
		}},
		{"Save", false, func(ctx context.Context, c *calls) error {
			item := c.item
			item.Ops = []string{"mine"}
			_, err := c.versions.Save(ctx, item)
			return err
		}},
		{"Apply", false, func(ctx context.Context, c *calls) error {
			got, err := c.versions.Apply(ctx, fixture.Key, appendOp("mine"))
			if err == nil && !slices.Contains(got.Ops, "mine") {
				err = errors.New("it returns an item without the change")
			}
			return err
		}},
		{"an event", false, func(ctx context.Context, c *calls) error {
			return c.events.Apply(ctx, fixture.Key, 2, appendOp("mine"))
		}},
	} {
		for _, applied := range []bool{true, false} {
			for _, same := range []bool{true, false} {
				name := mine.name + map[bool]string{true: ", applied", false: ", not applied"}[applied] + map[bool]string{true: ", covered by its process", false: ", covered by another process"}[same]
				t.Run(name, func(t *testing.T) {
					f, h := fixture.NewWith(t, fixture.Key)
					items := f.Items(t, h)
					c := &calls{rig.Must(optimistic.New(items, optimistic.Config{}))(t), rig.Must(nolock.New(items, nolock.Config{}))(t), rig.Must(items.Get(t.Context(), fixture.Key))(t)}
					others := c.events
					if !same {
						others = rig.Must(nolock.New(f.Items(t, f.Client), nolock.Config{}))(t)
					}
					h.Update = func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
						if n > 1 {
							return send()
						}
						if applied {
							rig.Must(send())(t)
						}
						for range 9 {
							if !same { // of nine processes: one alone would keep the ids of others in sight
								others = rig.Must(nolock.New(f.Items(t, f.Client), nolock.Config{}))(t)
							}
							rig.Must(others.Update(t.Context(), fixture.Key, func(_ context.Context, a *fixture.Account) error { a.Balance++; a.At += 10; return nil }))(t)
						}
						if !same {
							rig.Is(t, others.Apply(t.Context(), fixture.Key, 1000, expression.Set(expression.Name("note"), expression.Value("last"))))
						}
						return nil, rig.ErrNoAnswer
					}
					err := mine.write(t.Context(), c)
					known := same && (applied || mine.bound)
					if known {
						rig.Is(t, err)
					} else {
						rig.Is(t, err, repo.ErrOutcomeUnknown)
					}
					got := rig.Must(items.Get(t.Context(), fixture.Key))(t)
					times := len(got.Ops)
					if want := map[bool]int{true: 1}[applied || known]; times != want || got.Balance != 9 {
						t.Errorf("it was applied %d times, want %d, and the others %d times", times, want, got.Balance)
					}
				})
			}
		}
	}
}

// A commit that others cover by taking the lock and losing it: the lock tells nothing
// any more, but the ring does.
func TestACommitThatTheRingProves(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(ctx context.Context, locks *pessimistic.Repository[fixture.Account]) error{
		"alone": func(ctx context.Context, locks *pessimistic.Repository[fixture.Account]) error {
			_, err := locks.Update(ctx, fixture.Key, addOp("mine"))
			return err
		},
		"in a transaction": func(ctx context.Context, locks *pessimistic.Repository[fixture.Account]) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				_, err := locks.In(tx).Update(ctx, fixture.Key, addOp("mine"))
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, h := fixture.NewWith(t, fixture.Key)
			locks := rig.Must(pessimistic.New(f.Items(t, h), pessimistic.Config{}))(t)
			others := rig.Must(pessimistic.New(f.Items(t, f.Client), pessimistic.Config{}))(t)
			h.Update = func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
				if n != 2 { // the first one takes the lock
					return send()
				}
				rig.Must(send())(t)
				held := rig.Must(others.Acquire(t.Context(), fixture.Key))(t)
				rig.Is(t, others.Locker().Break(t.Context(), fixture.Key, held.Token()))
				return nil, rig.ErrNoAnswer
			}
			rig.Is(t, write(t.Context(), locks))
			if got := rig.Must(others.Get(t.Context(), fixture.Key))(t); len(got.Ops) != 1 {
				t.Errorf("it was applied %d times", len(got.Ops))
			}
		})
	}
}

// Where the client's attempts are used up, and nobody knows what became of the write,
// it is sent again until there is an answer; but not for ever, and not where it could be
// applied again.
func TestAWriteInDoubtIsSentBeyondThePolicy(t *testing.T) {
	t.Parallel()
	one := func(f *fixture.Fixture, lose func(n int) bool) (*optimistic.Repository[fixture.Account], *int) {
		sent := 0
		client := rig.Client(attemptsOf(2), rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
			if op != "UpdateItem" {
				return fault.None
			}
			if sent++; lose(sent) {
				return fault.LoseResponse
			}
			return fault.None
		}))
		return rig.Must(optimistic.New(f.Items(t, client), optimistic.Config{}))(t), &sent
	}
	t.Run("until there is an answer", func(t *testing.T) {
		f, _ := fixture.NewWith(t, fixture.Key)
		r, sent := one(f, func(n int) bool { return n <= 2 })
		rig.Must(r.Update(t.Context(), fixture.Key, addOp("mine")))(t)
		if got := rig.Must(r.Get(t.Context(), fixture.Key))(t); len(got.Ops) != 1 || *sent != 3 {
			t.Errorf("applied %d times by %d requests", len(got.Ops), *sent)
		}
	})
	t.Run("not for ever", func(t *testing.T) {
		f, _ := fixture.NewWith(t, fixture.Key)
		r, sent := one(f, func(int) bool { return true })
		_, err := r.Update(t.Context(), fixture.Key, addOp("mine"))
		rig.Is(t, err, repo.ErrOutcomeUnknown)
		if errors.Is(err, context.DeadlineExceeded) || *sent < 3 {
			t.Errorf("%d requests: %v", *sent, err)
		}
	})
	t.Run("not what is bound to nothing", func(t *testing.T) {
		f, _ := fixture.NewWith(t, fixture.Key)
		r, sent := one(f, func(int) bool { return true })
		rig.Must(r.Apply(t.Context(), fixture.Key, appendOp("mine")))(t) // by the read after it
		rig.Equal(t, *sent, 1, "requests")
	})
	t.Run("not what makes an item", func(t *testing.T) {
		f := fixture.New(t)
		r, sent := one(f, func(int) bool { return true })
		_, err := r.Upsert(t.Context(), fixture.Key, func(_ context.Context, a *fixture.Account) error { a.At = 1; return nil })
		rig.Is(t, err, repo.ErrOutcomeUnknown)
		rig.Equal(t, *sent, 2, "requests")
	})
	t.Run("not what was refused", func(t *testing.T) {
		f, h := fixture.NewWith(t, fixture.Key)
		n := 0
		h.Client = rig.Client(attemptsOf(1), rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
			if op != "UpdateItem" {
				return fault.None
			}
			n++
			return fault.Throttle
		}))
		r := rig.Must(optimistic.New(f.Items(t, h), optimistic.Config{}))(t)
		item := rig.Must(r.Get(t.Context(), fixture.Key))(t)
		_, err := r.Save(t.Context(), item)
		if err == nil || errors.Is(err, repo.ErrOutcomeUnknown) || n != 1 {
			t.Errorf("%d requests: %v", n, err)
		}
	})
}
