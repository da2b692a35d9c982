package once_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// of is a view for a request; "" is one without a fingerprint.
func of(v view, request string) view {
	if request == "" {
		return v
	}
	if o, ok := v.(*optimistic.Once[product]); ok {
		return o.WithFingerprint([]byte(request))
	}
	return v.(*pessimistic.Once[product]).WithFingerprint([]byte(request))
}

// requests are the pairs that come with one id, and whether the second is another one.
var requests = []struct {
	first, second string
	other         bool
}{{"", "", false}, {"", "a", false}, {"a", "", false}, {"a", "a", false}, {"a", "b", true}}

// all are the calls that change an item, and that delete it.
func all() map[string]func(context.Context, view) (product, error) {
	calls := map[string]func(context.Context, view) (product, error){
		"Delete": func(ctx context.Context, v view) (product, error) { return product{}, v.Delete(ctx, key) },
		"Create": func(ctx context.Context, v view) (product, error) { return v.Create(ctx, product{SKU: "apple"}) },
	}
	for name, do := range taking {
		calls[name] = do
	}
	return calls
}

// The same id with another request is told so, whichever calls bring the two, outside and
// inside of transactions; nothing of it is written, and it costs no more.
func TestTheSameIDWithAnotherRequest(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		stock, n := 10, 0
		for first, do := range taking {
			for _, pair := range requests {
				for second, again := range all() {
					for _, within := range []bool{false, true} {
						what := fmt.Sprintf("%s %q, then %s %q, in a transaction: %v", first, pair.first, second, pair.second, within)
						if stock == 1 {
							s.set(t, "SET stock = :n", map[string]types.AttributeValue{":n": number(100)})
							rig.Must(s.plain.Update(t.Context(), key, func(_ context.Context, p *product) error { p.Stock = 10; return nil }))(t)
							stock = 10
						}
						n++
						id := fmt.Sprint("m", n)
						v := of(s.once(id), pair.first)
						if got := rig.Must(do(t.Context(), v))(t); got.Stock != stock-1 || v.Repeated() {
							t.Fatalf("%s: %+v", what, got)
						}
						stock--
						before := s.raw(t)
						v = of(s.once(id), pair.second)
						var err error
						if within {
							err = s.inside(t, func(ctx context.Context, tx *txn.Tx) error {
								var err error
								switch second {
								case "Delete":
									err = inside(v, tx).Delete(ctx, key)
								case "Create":
									_, err = inside(v, tx).Create(ctx, product{SKU: "apple"})
								default:
									_, err = again(ctx, inTx{v, inside(v, tx)})
								}
								return err
							})
						} else {
							_, err = again(t.Context(), v)
						}
						if want := map[bool]error{true: repo.ErrMismatch}[pair.other]; !errors.Is(err, want) || v.Repeated() == pair.other {
							t.Errorf("%s: %v, repeated %v", what, err, v.Repeated())
						}
						if err != nil && (repo.VerdictOf(err) != repo.NotWritten || repo.Retryable(err)) {
							t.Errorf("%s: verdict %v, retryable %v", what, repo.VerdictOf(err), repo.Retryable(err))
						}
						if after := s.raw(t); after["version"].(*types.AttributeValueMemberN).Value != before["version"].(*types.AttributeValueMemberN).Value || s.stock(t) != stock {
							t.Errorf("%s: something was written", what)
						}
					}
				}
			}
		}
	})
}

// A fingerprint costs no request, and 12 bytes beside those of its id, which programs that
// know of no fingerprints find as any other.
func TestWhatAFingerprintLeaves(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for name, do := range taking {
			s.set(t, "REMOVE once, oncePast, onceEpoch SET stock = :ten", map[string]types.AttributeValue{":ten": number(10)})
			rig.Must(s.plain.Update(t.Context(), key, func(_ context.Context, p *product) error { p.Stock = 20; return nil }))(t)
			s.Count.Reset()
			rig.Must(do(t.Context(), s.once("without")))(t)
			want := s.Count.Total()
			s.Count.Reset()
			rig.Must(do(t.Context(), of(s.once("with"), "a")))(t)
			if s.Count.Total() > want {
				t.Errorf("%s: %d requests, want %d", name, s.Count.Total(), want)
			}
			ids := s.raw(t)["once"].(*types.AttributeValueMemberBS).Value
			found := map[string]bool{}
			for _, entry := range ids {
				if found[string(entry)] = true; len(entry) != 12 {
					t.Errorf("%s: an entry of %d bytes", name, len(entry))
				}
			}
			if len(ids) != 3 || !found[string(id("without"))] || !found[string(id("with"))] {
				t.Errorf("%s: %x", name, ids)
			}
			if state := s.table.State(s.raw(t)); state.OnceIDs != 2 {
				t.Errorf("%s: %d ids", name, state.OnceIDs)
			}
		}
	})
}

// It is remembered as long as its id: through an epoch's end.
func TestFingerprintsThroughEpochs(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for name, do := range taking {
			rig.Must(do(t.Context(), of(s.once(name), "a")))(t)
			s.set(t, "SET onceEpoch = :e", map[string]types.AttributeValue{":e": number(now() - 1)})
			rig.Must(s.plain.Update(t.Context(), key, func(_ context.Context, p *product) error { p.Stock = 10; return nil }))(t)
			rig.Must(do(t.Context(), of(s.once(name+" later"), "a")))(t)
			_, err := do(t.Context(), of(s.once(name), "b"))
			rig.Is(t, err, repo.ErrMismatch)
			rig.Must(do(t.Context(), of(s.once(name), "a")))(t)
			rig.Equal(t, s.stock(t), 9, "%s: stock", name)
		}
	})
}

// Callers of two requests under one id, all at once, with answers that are lost: one of
// the two is applied, once, and all others are told which.
func TestTwoRequestsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for round := range 3 {
			for name, do := range taking {
				id, before := fmt.Sprint(name, round), s.stock(t)
				var n atomic.Int64
				s.Faults(func(op string, _ int, _ []byte) fault.Kind {
					if op == "UpdateItem" && n.Add(1)%3 == 0 {
						return fault.LoseResponse
					}
					return fault.None
				})
				var done, mismatched sync.Map
				var callers sync.WaitGroup
				for i := range 8 {
					callers.Go(func() {
						request := []string{"a", "b"}[i%2]
						ctx, leave := context.WithTimeout(t.Context(), 30*time.Second)
						defer leave()
						switch _, err := do(ctx, of(s.once(id), request)); {
						case err == nil:
							done.Store(request, true)
						case errors.Is(err, repo.ErrMismatch):
							mismatched.Store(request, true)
						case !errors.Is(err, repo.ErrOutcomeUnknown):
							t.Errorf("%s: %v", id, err)
						}
					})
				}
				callers.Wait()
				s.Faults(nil)
				s.Net.Wait()
				rig.Equal(t, s.stock(t), before-1, "%s: stock", id)
				done.Range(func(request, _ any) bool {
					if _, both := mismatched.Load(request); both {
						t.Errorf("%s: request %v was done, and was another", id, request)
					}
					return true
				})
			}
		}
	})
}

// A transaction, too; by items that are read, locked, and not read.
func TestATransactionOfAnotherRequest(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		other := rig.New(t)
		type event struct {
			ID string `dynamodbav:"id" repo:"pk"`
			At int64  `dynamodbav:"at" repo:"eventtime"`
		}
		events := rig.Must(nolock.New(rig.Must(repo.NewTable[event](s.Client, other.Table, repo.TableConfig{}))(t), nolock.Config{}))(t)
		rig.Is(t, rig.Must(repo.NewTable[event](s.Client, other.Table, repo.TableConfig{}))(t).EnsureTable(t.Context()))
		n := 0
		for what, fn := range map[string]func(ctx context.Context, tx *txn.Tx) error{
			"read": func(ctx context.Context, tx *txn.Tx) error {
				n++
				_, err := inside(s.once(fmt.Sprint("read", n)), tx).Update(ctx, key, take)
				return err
			},
			"swallowed": func(ctx context.Context, tx *txn.Tx) error {
				n++
				_, _ = inside(s.once(fmt.Sprint("swallowed", n)), tx).Update(ctx, key, take)
				return nil
			},
			"not read": func(ctx context.Context, tx *txn.Tx) error {
				if err := events.In(tx).Put(ctx, event{"e", time.Now().UnixNano()}); err != nil {
					return err
				}
				return applyIn(ctx, s, tx)
			},
		} {
			for i, pair := range requests {
				id, before := fmt.Sprint(what, i), s.stock(t)
				run := func(request string) (bool, error) {
					o := txn.Once(id)
					if request != "" {
						o = o.WithFingerprint([]byte(request))
					}
					err := o.Run(t.Context(), fn)
					return o.Repeated(), err
				}
				if repeated, err := run(pair.first); err != nil || repeated {
					t.Fatalf("%s: %v", id, err)
				}
				after := s.stock(t)
				repeated, err := run(pair.second)
				if want := map[bool]error{true: repo.ErrMismatch}[pair.other]; !errors.Is(err, want) || repeated == pair.other || s.stock(t) != after {
					t.Errorf("%s, %+v: %v, repeated %v, stock %d, %d, %d", what, pair, err, repeated, before, after, s.stock(t))
				}
				if err != nil && (repo.VerdictOf(err) != repo.NotWritten || repo.Retryable(err)) {
					t.Errorf("%s: verdict %v, retryable %v", what, repo.VerdictOf(err), repo.Retryable(err))
				}
			}
			s.set(t, "SET stock = :n", map[string]types.AttributeValue{":n": number(50)})
			rig.Must(s.plain.Update(t.Context(), key, func(_ context.Context, p *product) error { p.Stock = 10; return nil }))(t)
		}
	})
}

// applyIn takes one without reading.
func applyIn(ctx context.Context, s *store, tx *txn.Tx) error {
	take := expression.Add(expression.Name("stock"), expression.Value(-1))
	if r, ok := s.plain.(*optimistic.Repository[product]); ok {
		return r.In(tx).Apply(ctx, key, take)
	}
	return s.plain.(*pessimistic.Repository[product]).In(tx).Apply(ctx, key, take)
}

func TestAnEmptyFingerprint(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for _, empty := range [][]byte{nil, {}} {
			v, ok := s.once("m").(*optimistic.Once[product])
			if !ok {
				_, err := s.once("m").(*pessimistic.Once[product]).WithFingerprint(empty).Update(t.Context(), key, take)
				rig.Is(t, err, repo.ErrConfig)
			} else {
				_, err := v.WithFingerprint(empty).Update(t.Context(), key, take)
				rig.Is(t, err, repo.ErrConfig)
			}
			rig.Is(t, txn.Once("m").WithFingerprint(empty).Run(t.Context(), func(context.Context, *txn.Tx) error { return nil }), repo.ErrConfig)
		}
		if s.Count.Total() != 0 {
			t.Error("something was sent")
		}
	})
}
