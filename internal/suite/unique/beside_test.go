package unique_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

var rawAnn = row{"id": &types.AttributeValueMemberS{Value: "ann"}}

// A locked change of a unique value that meets a transaction once goes through, also where
// another process has come into the queue behind its lock.
func TestAConflictBesideAQueue(t *testing.T) {
	for _, strategy := range []string{"pessimistic", "pessimistic, combining"} {
		t.Run(strategy, func(t *testing.T) {
			r := rig.New(t)
			s := open(t, r, strategy, lease)
			rig.Is(t, s.table.EnsureTable(t.Context()))
			s.make(t, customer{ID: "ann", Email: "a"})
			other := open(t, r.Peer(), strategy, lease)
			var all sync.WaitGroup
			s.Nth("TransactWriteItems", 0, fault.TransactionConflict)
			rig.Must(s.Update(t.Context(), key("ann"), func(_ context.Context, c *customer) error {
				all.Go(func() { rig.Must(other.Update(t.Context(), key("ann"), setNote("n")))(t) })
				rig.Await(t, "the other stands in the queue", func() bool { return s.Item(t, rawAnn)["lockQueue"] != nil })
				c.Email = "b"
				return nil
			}))(t)
			all.Wait()
		})
	}
}

// One caller's value that another item has is no other caller's error.
func TestOthersInAGroup(t *testing.T) {
	for _, strategy := range []string{"optimistic, warm and combining", "pessimistic, combining"} {
		t.Run(strategy, func(t *testing.T) {
			s := open(t, rig.New(t), strategy, lease)
			rig.Is(t, s.table.EnsureTable(t.Context()))
			s.make(t, customer{ID: "ann", Email: "a"})
			s.make(t, customer{ID: "bob", Email: "b"})
			var all sync.WaitGroup
			rig.Must(s.Update(t.Context(), key("ann"), func(_ context.Context, c *customer) error {
				if c.Note != "" {
					return nil // it runs again, alone
				}
				all.Go(func() {
					_, err := s.Update(t.Context(), key("ann"), setEmail("b"))
					rig.Is(t, err, repo.ErrNotUnique)
				})
				all.Go(func() { rig.Must(s.Update(t.Context(), key("ann"), setNote("another")))(t) })
				time.Sleep(60 * time.Millisecond) // they come into line
				c.Note = "one"
				return nil
			}))(t)
			all.Wait()
		})
	}
}

// Who was refused once holds up nobody afterwards.
func TestAPassIsGivenBack(t *testing.T) {
	r := rig.New(t)
	s, other := open(t, r, "optimistic", lease), open(t, r.Peer(), "optimistic", lease)
	rig.Is(t, s.table.EnsureTable(t.Context()))
	s.make(t, customer{ID: "ann", Email: "a"})
	began := time.Now()
	for i := range 50 {
		runs := 0
		rig.Must(s.Update(t.Context(), key("ann"), func(_ context.Context, c *customer) error {
			if runs++; runs == 1 { // another process writes first
				rig.Must(other.Update(context.WithoutCancel(t.Context()), key("ann"), setNote(fmt.Sprint(i))))(t)
			}
			c.Email = fmt.Sprint("e", i)
			return nil
		}))(t)
	}
	if took := time.Since(began); took > 20*time.Second { // 50 times 600 ms
		t.Errorf("nobody was there, and it took %v", took)
	}
}
