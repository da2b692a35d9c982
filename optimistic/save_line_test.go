package optimistic_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// Saves and changes stand in one line, whoever combines; a save from inside a change of
// the same item does not wait for that.
func TestSavesBetweenChanges(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]optimistic.Config{"": {}, "combining": {Combine: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, cfg)
			var behind sync.WaitGroup
			var inner, saved, removed error
			first := true
			_, err := p.mine.Update(t.Context(), key, func(ctx context.Context, c *customer) error {
				if c.Orders++; !first {
					return nil
				}
				first = false
				behind.Go(func() { _, saved = p.mine.Save(t.Context(), customer{ID: "c1", Version: 40}) })
				rig.Await(t, "the save stands in line", func() bool { return optimistic.Waiting(p.mine, key) == 1 })
				behind.Go(func() { removed = p.mine.Remove(t.Context(), customer{ID: "c1", Version: 41}) })
				rig.Await(t, "the removal stands in line", func() bool { return optimistic.Waiting(p.mine, key) == 2 })
				behind.Go(func() { rig.Must(p.mine.Update(t.Context(), key, addOrder))(t) })
				rig.Await(t, "the update stands in line", func() bool { return optimistic.Waiting(p.mine, key) == 3 })
				_, inner = p.mine.Save(ctx, customer{ID: "c1", Version: 42})
				return nil
			})
			behind.Wait()
			rig.Is(t, err)
			rig.Is(t, inner, repo.ErrNested)
			for _, err := range []error{saved, removed} {
				rig.Is(t, err, repo.ErrConflict)
			}
			if got := rig.Must(p.mine.Get(t.Context(), key))(t); got.Orders != 2 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A save that waits in line and whose context ends was not sent.
func TestASaveThatLeavesTheLine(t *testing.T) {
	t.Parallel()
	p := newPair(t, optimistic.Config{})
	ctx, leave := context.WithCancel(t.Context())
	var saved error
	rig.Must(p.mine.Update(t.Context(), key, func(context.Context, *customer) error {
		told := make(chan struct{})
		go func() {
			defer close(told)
			_, saved = p.mine.Save(ctx, customer{ID: "c1", Version: p.first.Version})
		}()
		rig.Await(t, "the save stands in line", func() bool { return optimistic.Waiting(p.mine, key) == 1 })
		leave()
		<-told
		return nil
	}))(t)
	rig.Is(t, saved, context.Canceled)
	if errors.Is(saved, repo.ErrOutcomeUnknown) {
		t.Errorf("it was not sent: %v", saved)
	}
}

// However calls end, the process does not go on looking for their writes.
func TestNoWriteIsExpectedAfterItsCall(t *testing.T) {
	t.Parallel()
	b := rig.New(t)
	client, net := rig.Faulty(3, 0.25)
	plain := rig.Must(repo.NewTable[customer](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, plain.EnsureTable(t.Context()))
	made := rig.Must(rig.Must(optimistic.New(plain, optimistic.Config{}))(t).Create(t.Context(), customer{ID: "c1"}))(t)
	r := rig.Must(optimistic.New(rig.Must(repo.NewTable[customer](client, b.Table, repo.TableConfig{}))(t), optimistic.Config{}))(t)
	under := false
	for n := range 40 {
		_, _ = r.Update(t.Context(), key, func(context.Context, *customer) error {
			under = under || optimistic.Expected(r) > 0
			if n%4 == 3 {
				return errors.New("no")
			}
			return nil
		})
		_, _ = r.Update(t.Context(), key, addOrder)
		_, _ = r.Save(t.Context(), made)
		_, _ = r.Create(t.Context(), made)
		_, _ = r.Apply(t.Context(), key, expression.Set(expression.Name("Orders"), expression.Value(n)))
		_ = r.Remove(t.Context(), made)
	}
	net.Wait()
	rig.Equal(t, optimistic.Expected(r), 0, "writes are expected")
	if net.Counts()[fault.LoseResponse] == 0 || under {
		t.Errorf("nothing was tried, or a write was expected before it was made (%v)", under)
	}
}
