package txn_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// process is a process in virtual time, whose requests are counted and can be lost.
type process struct {
	*world
	broken atomic.Pointer[rig.Script]
}

// inBubble runs a test in virtual time, in one process, with another one beside it.
func inBubble(t *testing.T, run func(t *testing.T, p, other *process)) {
	newWorld(t) // makes the tables
	rig.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		run(t, openProcess(t, network), openProcess(t, network))
	})
}

func openProcess(t *testing.T, network fault.Doer) *process {
	p := &process{}
	r := &rig.Rig{Table: tables.Table}
	r.Client = rig.Client(func(o *dynamodb.Options) {
		r.Count = fault.NewCounter(fault.New(network, fault.Config{Script: func(op string, n int, body []byte) fault.Kind {
			if s := p.broken.Load(); s != nil {
				return (*s)(op, n, body)
			}
			return fault.None
		}}))
		o.HTTPClient = r.Count
	})
	p.world = openWorld(t, r, false)
	return p
}

// wanted makes an item of a repository with optimistic.Config.Fair one that others want:
// its transactions then take its lock.
func (p *process) wanted(t *testing.T, other *process, id string) {
	t.Helper()
	runs := 0
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		err := p.stores["optimistic, fair"].in(tx).add(ctx, id, 1)
		if runs++; err == nil && runs <= 3 {
			rig.Is(t, other.stores["optimistic, fair"].add(txn.Outside(ctx), id, 1))
		}
		return err
	}))
}

// behind lets a transaction hold an item until all others stand behind it, in their
// order, and returns what became of each.
func (p *process) behind(t *testing.T, first func(context.Context, *txn.Tx) error, others ...func() error) (errs []error) {
	t.Helper()
	errs = make([]error, 1+len(others))
	gate := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		errs[0] = txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			err := first(ctx, tx)
			<-gate
			return err
		})
	})
	synctest.Wait()
	for i, other := range others {
		done.Go(func() { errs[1+i] = other() })
		synctest.Wait()
	}
	p.Count.Reset()
	close(gate)
	done.Wait()
	return errs
}

// runner is the configuration of a transaction, or one under an operation id.
type runner interface {
	Run(ctx context.Context, fn func(ctx context.Context, tx *txn.Tx) error) error
}

// adds is a transaction that adds to items.
func adds(ctx context.Context, s store, by runner, ids ...string) error {
	return by.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		for _, id := range ids {
			if err := s.in(tx).add(ctx, id, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

var lockingKinds = []string{"pessimistic", "pessimistic, versions", "fair", "optimistic, fair"}

// Whoever stands behind a transaction in its process, another one or a single change,
// has the item by that one's commit, as it was left: one request each.
func TestALockGoesOnInTheProcess(t *testing.T) {
	for _, kind := range lockingKinds {
		for name, ids := range map[string][]string{"one item": {"x"}, "two items": {"x", "y"}} {
			t.Run(kind+", "+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, p, other *process) {
					s, want := p.stores[kind], 10
					for i := range ids {
						ids[i] = p.id(ids[i])
						rig.Is(t, s.create(t.Context(), ids[i], 10))
					}
					if kind == "optimistic, fair" {
						p.wanted(t, other, ids[0])
						want += 4
						if len(ids) == 2 {
							p.wanted(t, other, ids[1])
						}
					}
					one := func() error { return adds(t.Context(), s, txn.Config{}, ids...) }
					errs := p.behind(t, func(ctx context.Context, tx *txn.Tx) error {
						for _, id := range ids {
							if err := s.in(tx).add(ctx, id, 1); err != nil {
								return err
							}
						}
						return nil
					}, one, one, func() error { return s.add(t.Context(), ids[len(ids)-1], 1) }, one)
					rig.Is(t, errors.Join(errs...))
					// Of two items only the first is waited for: the others wait there.
					last := want + 5
					if len(ids) == 2 {
						has(t, other.stores[kind], ids[0], want+4)
					} else if n := p.Count.Total(); n != 5 {
						t.Errorf("%d requests for five changes: %v", n, p.Count.Counts())
					}
					has(t, other.stores[kind], ids[len(ids)-1], last)
					if ring := p.ring(t, kind, ids[0]); bytes.Contains(ring, make([]byte, 8)) {
						t.Errorf("the ring of writers has one without an id: %x", ring)
					}
					p.free(t, other, kind, ids...)
				})
			})
		}
	}
}

// ring is the ring of an item's writers.
func (p *process) ring(t *testing.T, kind, id string) []byte {
	t.Helper()
	table := p.Table + map[string]string{"pessimistic": "-p", "pessimistic, versions": "-v", "fair": "-f", "optimistic, fair": "-of"}[kind]
	out := rig.Must(p.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}}))(t)
	ring, ok := out.Item["writers"].(*types.AttributeValueMemberB)
	if !ok {
		return nil
	}
	return ring.Value
}

// free fails the test unless nobody holds the items: another process has them long before
// a lease is over. An entry in a queue whose owner has heard nothing of it costs a second.
func (p *process) free(t *testing.T, other *process, kind string, ids ...string) {
	t.Helper()
	began := time.Now()
	for _, id := range ids {
		rig.Is(t, other.stores[kind].add(t.Context(), id, 0))
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("a lock was left: the next one waited for %v", took)
	}
}

// What is passed on remembers the operation ids that were applied.
func TestAPassedOnItemRemembersIDs(t *testing.T) {
	inBubble(t, func(t *testing.T, p, other *process) {
		s, x := p.stores["pessimistic"], p.id("x")
		rig.Is(t, s.create(t.Context(), x, 10))
		under := func() error { return adds(t.Context(), s, txn.Config{}.Once("order-7"), x) }
		errs := p.behind(t, func(ctx context.Context, tx *txn.Tx) error { return s.in(tx).add(ctx, x, 1) }, under, under, under)
		rig.Is(t, errors.Join(errs...))
		has(t, other.stores["pessimistic"], x, 12)
		p.free(t, other, "pessimistic", x)
	})
}

// Where only DynamoDB knows what the item is now, or it is gone, the next one looks for
// itself.
func TestWhatIsNotKnownIsNotPassedOn(t *testing.T) {
	inBubble(t, func(t *testing.T, p, other *process) {
		r := p.locking(t, pessimistic.Config{})
		s, x := plainStore(r), p.id("x")
		rig.Is(t, s.create(t.Context(), x, 10))
		errs := p.behind(t, func(ctx context.Context, tx *txn.Tx) error {
			if _, err := r.In(tx).Get(ctx, key(x)); err != nil {
				return err
			}
			return r.In(tx).Apply(ctx, key(x), expression.Add(expression.Name("n"), expression.Value(5)))
		}, func() error { return adds(t.Context(), s, txn.Config{}, x) })
		rig.Is(t, errors.Join(errs...))
		has(t, other.stores["pessimistic"], x, 16)

		errs = p.behind(t, func(ctx context.Context, tx *txn.Tx) error { return s.in(tx).remove(ctx, x) },
			func() error { return adds(t.Context(), s, txn.Config{}, x) },
			func() error { return s.upsert(t.Context(), x, 3) },
			func() error { return adds(t.Context(), s, txn.Config{}, x) })
		rig.Is(t, errs[0])
		rig.Is(t, errs[2])
		want := 3
		for _, err := range []error{errs[1], errs[3]} { // before the item is there again, or after it
			if err == nil {
				want++
			} else {
				rig.Is(t, err, repo.ErrNotFound)
			}
		}
		has(t, other.stores["pessimistic"], x, want)
		p.free(t, other, "pessimistic", x)

		y := p.id("y")
		rig.Is(t, s.create(t.Context(), y, 10))
		errs = p.behind(t, func(ctx context.Context, tx *txn.Tx) error {
			return errors.Join(s.in(tx).remove(ctx, x), s.in(tx).remove(ctx, y))
		}, func() error { return adds(t.Context(), s, txn.Config{}, x) })
		rig.Is(t, errs[0])
		rig.Is(t, errs[1], repo.ErrNotFound)
	})
}

// What a transaction holds does not end with its lease while it waits for another lock.
func TestWhatIsHeldLastsWhileATransactionWaits(t *testing.T) {
	for _, where := range []string{"elsewhere", "in the process"} {
		t.Run(where, func(t *testing.T) {
			inBubble(t, func(t *testing.T, p, other *process) {
				x, y := p.id("x"), p.id("y")
				s := plainStore(p.locking(t, pessimistic.Config{Lease: 5 * time.Second}))
				rig.Is(t, errors.Join(s.create(t.Context(), x, 10), s.create(t.Context(), y, 10)))
				before := s
				if where == "elsewhere" {
					before = other.stores["pessimistic"]
				}
				var done sync.WaitGroup
				for range 3 {
					done.Go(func() {
						rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
							err := before.in(tx).add(ctx, y, 1)
							time.Sleep(4 * time.Second)
							return err
						}))
					})
				}
				time.Sleep(time.Second)
				runs := 0
				rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
					runs++
					return errors.Join(s.in(tx).add(ctx, x, 1), s.in(tx).add(ctx, y, 1))
				}))
				done.Wait()
				rig.Equal(t, runs, 1, "runs")
				has(t, other.stores["pessimistic"], y, 14)
			})
		})
	}
}

// Whatever becomes of a commit's answers, its verdict is true, and whoever stands behind
// it neither waits for a lease nor loses what was written.
func TestADoubtIsPassedOn(t *testing.T) {
	for _, kind := range []string{"pessimistic", "fair"} {
		for _, fate := range []fault.Kind{fault.LoseResponse, fault.DropRequest} {
			for name, ids := range map[string][]string{"one item": {"x"}, "two items": {"x", "y"}} {
				for _, lost := range []int{1, 1000} {
					inBubble(t, func(t *testing.T, p, other *process) {
						s := p.stores[kind]
						ids := append([]string(nil), ids...)
						for i := range ids {
							ids[i] = p.id(ids[i])
							rig.Is(t, s.create(t.Context(), ids[i], 10))
						}
						began, n := time.Now(), 0
						errs := p.behind(t, func(ctx context.Context, tx *txn.Tx) error {
							for _, id := range ids {
								if err := s.in(tx).add(ctx, id, 1); err != nil {
									return err
								}
							}
							script := func(string, int, []byte) fault.Kind {
								if n++; n > lost || time.Since(began) > 8*time.Second {
									return fault.None
								}
								return fate
							}
							p.broken.Store(&script)
							return nil
						}, func() error { return adds(t.Context(), s, txn.Config{}, ids[0]) })
						got, err := other.stores[kind].get(t.Context(), ids[0])
						rig.Is(t, errors.Join(err, errs[1]))
						want := 12
						if errors.Is(errs[0], repo.ErrOutcomeUnknown) && got == 11 {
							want = 11
						} else if errs[0] != nil && !errors.Is(errs[0], repo.ErrOutcomeUnknown) {
							want = 11
						}
						rig.Equal(t, got, want, "%s, %s, %v %d times: after %v", kind, name, fate, lost, errs[0])
						if lost == 1 && errs[0] != nil {
							t.Errorf("%s, %s, %v: %v", kind, name, fate, errs[0])
						}
						p.free(t, other, kind, ids...)
						if took := time.Since(began); took > lease/2 {
							t.Errorf("%s, %s, %v %d times: it took %v", kind, name, fate, lost, took)
						}
					})
				}
			}
		}
	}
}

// While other processes wait, so many transactions of one have the lock one after the
// other, and then the next process has it.
func TestOthersComeBetweenTransactions(t *testing.T) {
	inBubble(t, func(t *testing.T, p, other *process) {
		s, x := p.stores["fair"], p.id("x")
		rig.Is(t, s.create(t.Context(), x, 0))
		locker := rig.Must(lockedread.New(table[plain](t, other.Rig, "-f", false), lockedread.Config{Fair: true}))(t)
		first := rig.Must(locker.Acquire(t.Context(), key(x)))(t)
		var done sync.WaitGroup
		add := func() { rig.Is(t, adds(t.Context(), s, txn.Config{}, x)) }
		done.Go(add)
		time.Sleep(time.Second)
		var before int
		done.Go(func() {
			rig.Must(other.stores["fair"].(of[plain]).Update(t.Context(), key(x), func(_ context.Context, item *plain) error {
				before = item.N
				return nil
			}))(t)
		})
		time.Sleep(time.Second)
		for range 19 {
			done.Go(add)
		}
		time.Sleep(time.Second)
		rig.Is(t, first.Release(t.Context()))
		done.Wait()
		if before != 9 { // the first, and eight to whom it was handed on
			t.Errorf("%d transactions were before the other process", before)
		}
		has(t, other.stores["fair"], x, 20)
	})
}

// Who gives up behind a transaction leaves nothing behind, at whatever moment.
func TestLeavingBehindATransaction(t *testing.T) {
	inBubble(t, func(t *testing.T, p, other *process) {
		s, x := p.stores["fair"], p.id("x")
		rig.Is(t, s.create(t.Context(), x, 10))
		want := 10
		for range rig.Share(20, 200) {
			ctx, cancel := context.WithCancel(t.Context())
			errs := p.behind(t, func(ctx context.Context, tx *txn.Tx) error {
				go cancel()
				return s.in(tx).add(ctx, x, 1)
			}, func() error { return adds(ctx, s, txn.Config{}, x) }, func() error { return adds(t.Context(), s, txn.Config{}, x) })
			want += 2
			rig.Is(t, errors.Join(errs[0], errs[2]))
			if errs[1] == nil {
				want++
			}
			has(t, other.stores["fair"], x, want)
		}
		p.free(t, other, "fair", x)
	})
}
