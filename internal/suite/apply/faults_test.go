package apply_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// Expressions and changes of both strategies on one item over a network that
// breaks: what was acknowledged is in the item once.
func TestMixedUnderFaults(t *testing.T) {
	b := rig.New(t)
	plain := rig.Must(repo.NewTable[product](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, plain.EnsureTable(t.Context()))
	setup := rig.Must(optimistic.New(plain, optimistic.Config{}))(t)
	rig.Must(setup.Create(t.Context(), product{SKU: "apple"}))(t)
	// A copy that arrives behind another write is applied: what an expression is
	// bound to cannot tell it from a new one.
	kinds := slices.DeleteFunc(fault.AllKinds(), func(k fault.Kind) bool { return k == fault.Resend || k == fault.LateDuplicate })
	client, net := rig.Faulty(11, 0.15, kinds...)
	table := rig.Must(repo.NewTable[product](client, b.Table, repo.TableConfig{AttemptTimeout: 2 * time.Second}))(t)
	strategies := []applier{
		rig.Must(optimistic.New(table, optimistic.Config{Attempts: 1000}))(t),
		rig.Must(pessimistic.New(table, pessimistic.Config{}))(t),
	}
	var mu sync.Mutex
	var sure, unsure, refused int
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			for n := range rig.Share(10, 60) {
				r := strategies[(w+n)%2]
				var err error
				if w%2 == 0 {
					_, err = r.Apply(t.Context(), key, add(1))
				} else {
					_, err = r.Update(t.Context(), key, func(_ context.Context, p *product) error { p.Stock++; return nil })
				}
				mu.Lock()
				switch {
				case err == nil:
					sure++
				case errors.Is(err, repo.ErrOutcomeUnknown):
					unsure++
				default:
					refused++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	net.Wait()
	got := rig.Must(setup.Get(t.Context(), key))(t)
	t.Logf("%d requests, %d faults: %d applied, %d unknown, %d refused; the item has %d", net.Requests(), net.Faulted(), sure, unsure, refused, got.Stock)
	if got.Stock < sure || got.Stock > sure+unsure {
		t.Errorf("the item has %d changes", got.Stock)
	}
	if net.Faulted() == 0 || sure == 0 {
		t.Error("nothing was tried")
	}
}

// A lost answer: the request is never sent again. Its traces tell, unless a later
// write has covered them.
func TestALostAnswer(t *testing.T) {
	type send = func() (*dynamodb.UpdateItemOutput, error)
	for name, c := range map[string]struct {
		answer func(s *store, t *testing.T, send send) error
		want   error
		stock  int
	}{
		"applied":                           {func(_ *store, _ *testing.T, send send) error { _, err := send(); return err }, nil, 11},
		"not applied":                       {func(*store, *testing.T, send) error { return nil }, repo.ErrOutcomeUnknown, 10},
		"applied, then others who read":     {func(s *store, t *testing.T, send send) error { _, err := send(); s.update(t); return err }, nil, 111},
		"applied, then others who do not":   {func(s *store, t *testing.T, send send) error { _, err := send(); s.apply(t); return err }, repo.ErrOutcomeUnknown, 111},
		"applied, then deleted":             {func(s *store, t *testing.T, send send) error { _, err := send(); s.remove(t); return err }, repo.ErrOutcomeUnknown, -1},
		"applied, and held by another then": {func(s *store, t *testing.T, send send) error { _, err := send(); s.hold(t); return err }, nil, 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, s *store) {
				s.act.Update = func(n int, _ *dynamodb.UpdateItemInput, send func() (*dynamodb.UpdateItemOutput, error)) (*dynamodb.UpdateItemOutput, error) {
					if n > 1 {
						t.Error("it is sent again")
					}
					if err := c.answer(s, t, send); err != nil {
						t.Error(err)
					}
					return nil, rig.ErrNoAnswer
				}
				got, err := s.mine.Apply(t.Context(), key, add(1))
				rig.Is(t, err, targets(c.want)...)
				if c.want == nil && got.Stock != c.stock {
					t.Errorf("returned %+v", got)
				}
				if errors.Is(err, repo.ErrConflict) || errors.Is(err, repo.ErrLocked) || errors.Is(err, repo.ErrCondition) {
					t.Errorf("it says also that nothing was written: %v", err)
				}
				if c.stock >= 0 && s.stock(t) != c.stock {
					t.Errorf("stock %d", s.stock(t))
				}
			})
		})
	}
}

// A copy that something on the way makes is refused while nobody else has written.
func TestACopy(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		s.Nth("UpdateItem", 0, fault.Resend)
		got := rig.Must(s.mine.Apply(t.Context(), key, add(1)))(t)
		if got.Stock != 11 || s.stock(t) != 11 {
			t.Errorf("%+v, stock %d", got, s.stock(t))
		}
	})
}

func targets(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

func (s *store) update(t *testing.T) {
	rig.Must(s.others.Update(t.Context(), key, func(_ context.Context, p *product) error { p.Stock += 100; return nil }))(t)
}
func (s *store) apply(t *testing.T)  { rig.Must(s.others.Apply(t.Context(), key, add(100)))(t) }
func (s *store) remove(t *testing.T) { rig.Is(t, s.others.Delete(t.Context(), key)) }
func (s *store) hold(t *testing.T)   { rig.Must(s.locks.Acquire(t.Context(), key))(t) }
