package once_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// filled puts so many ids on the item that whoever comes next moves them.
func (s *store) filled(t *testing.T, n int) {
	t.Helper()
	ids := make([][]byte, n)
	for i := range ids {
		ids[i] = id(fmt.Sprint("before ", i))
	}
	s.set(t, "SET once = :a, onceEpoch = :e", map[string]types.AttributeValue{":a": set(ids...), ":e": number(now())})
	s.stocked(t, 10)
}

// remembers fails the test unless the item remembers what filled has put there, and m.
func (s *store) remembers(t *testing.T, n int) {
	t.Helper()
	before := s.stock(t)
	for _, name := range []string{"before 0", fmt.Sprint("before ", n/2), fmt.Sprint("before ", n-1), "m"} {
		v := s.once(name)
		if rig.Must(taking["Update"](t.Context(), v))(t); !v.Repeated() || s.stock(t) != before {
			t.Errorf("%s is forgotten, and made again", name)
		}
	}
}

// One request after the other is the last of a process that goes over to rows, and arrives
// or does not: whoever brings the message again makes it once, and nothing is forgotten.
func TestProcessesThatDieGoingOver(t *testing.T) {
	const ids = 200
	for _, last := range rig.Share([]int{100, 202}, []int{1, 2, 3, 50, 100, 199, 200, 201, 202, 203}) {
		for _, end := range rig.Share([]fault.Kind{fault.LoseResponse}, []fault.Kind{fault.DropRequest, fault.LoseResponse}) {
			t.Run(fmt.Sprintf("%d, %v", last, end), func(t *testing.T) {
				each(t, func(t *testing.T, s *store) { dies(t, s, ids, last, end) })
			})
		}
	}
}

// unlocked ends the lock that nobody will release, as an operator does.
func (s *store) unlocked(t *testing.T) {
	t.Helper()
	if s.raw(t)["lockedBy"] != nil {
		s.set(t, "REMOVE lockedBy, lockHeld, lockTime, lockLease SET lockStolen = lockToken", nil)
	}
}

func dies(t *testing.T, s *store, ids, last int, end fault.Kind) {
	for name, do := range taking {
		s.filled(t, ids)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		n := 0
		s.Faults(func(string, int, []byte) fault.Kind {
			mu.Lock()
			defer mu.Unlock()
			switch n++; {
			case n < last:
				return fault.None
			case n == last:
				cancel()
				return end
			}
			return fault.DropRequest
		})
		_, err := do(ctx, s.once("m"))
		cancel()
		s.Always(fault.None)
		if err != nil {
			s.unlocked(t)
		}
		for {
			// The operator may have ended a lock that was kept for the next of the process.
			if _, err = do(t.Context(), s.once("m")); !errors.Is(err, repo.ErrOutcomeUnknown) && !errors.Is(err, repo.ErrLockLost) {
				break
			}
		}
		rig.Is(t, err)
		rig.Equal(t, s.stock(t), 9, "%s: are left of ten", name)
		s.remembers(t, ids)
		s.set(t, "REMOVE once, oncePast, onceEpoch", nil)
	}
}

// A client that ends the goroutine in which a row is put has put none: the ids of that row
// stay on the item.
func TestARowWhoseClientEndsItsGoroutine(t *testing.T) {
	const ids = 200
	for name, open := range strategies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var armed atomic.Bool
			s := &store{Rig: rig.New(t)}
			client := &rig.Intercept{Client: s.Client, Update: func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
				if in.Key["sku"].(*types.AttributeValueMemberS).Value != "apple" && armed.CompareAndSwap(true, false) {
					runtime.Goexit()
				}
				return send()
			}}
			s.table = rig.Must(repo.NewTable[product](client, s.Table, repo.TableConfig{}))(t)
			rig.Is(t, s.table.EnsureTable(t.Context()))
			s.once, s.plain = open(t, s.table, lease)
			rig.Must(s.plain.Create(t.Context(), product{SKU: "apple", Stock: 10}))(t)
			s.filled(t, ids)
			armed.Store(true)
			_, err := s.once("m").Update(t.Context(), key, take)
			if n := entries(s.raw(t)); armed.Load() || repo.VerdictOf(err) != repo.NotWritten || n != ids {
				t.Errorf("%v; the item has %d ids of %d", err, n, ids)
			}
			rig.Must(s.once("m").Update(t.Context(), key, take))(t)
			s.remembers(t, ids)
		})
	}
}

// Copies of every write of a call that goes over, and of those behind it, come late: each is
// delivered once more, after all, and again after the item has gone over once more.
func TestCopiesOfWritesThatGoOver(t *testing.T) {
	const ids = 200
	for name, open := range strategies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, copier := rig.Copied()
			s := &store{Rig: rig.New(t)}
			s.table = rig.Must(repo.NewTable[product](client, s.Table, repo.TableConfig{}))(t)
			rig.Is(t, s.table.EnsureTable(t.Context()))
			s.once, s.plain = open(t, s.table, lease)
			rig.Must(s.plain.Create(t.Context(), product{SKU: "apple", Stock: 10}))(t)
			s.filled(t, ids)
			sent := copier.Keep(fault.Writes)
			calls := []string{"Update", "Apply", "Upsert"}
			for i, call := range calls {
				rig.Must(taking[call](t.Context(), s.once([]string{"m", "n", "o"}[i])))(t)
			}
			copies := sent()
			deliver := func(when string, want int) {
				for _, one := range slices.Backward(copies) {
					_, _ = one.Deliver() //nolint:bodyclose // read, and in memory; most are refused
				}
				s.unlocked(t)
				rig.Equal(t, s.stock(t), want, "%s: are left", when)
			}
			deliver("at once", 7)
			s.stocked(t, 200)
			for i := range 140 {
				rig.Must(taking[calls[i%3]](t.Context(), s.once(fmt.Sprint("behind ", i))))(t)
			}
			deliver("after another move", 60)
			s.remembers(t, ids)
		})
	}
}
