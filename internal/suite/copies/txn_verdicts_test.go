package copies_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// TestEveryRequestOfATransaction copies each request of each call, whatever it is: the
// second answer is seen, or the copy comes behind the call.
func TestEveryRequestOfATransaction(t *testing.T) {
	var copied atomic.Int64
	t.Run("cells", func(t *testing.T) {
		for _, c := range transactions() {
			for _, late := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, late %v", c.name, late), func(t *testing.T) {
					t.Parallel()
					for nth := 0; ; nth++ {
						w := newCell(t, c)
						seen := 0
						var kept *fault.Copy
						var mu sync.Mutex
						w.net.On(func(one *fault.Copy) (*http.Response, error) {
							mu.Lock()
							seen++
							hit := seen == nth+1
							mu.Unlock()
							if !hit {
								return nil, nil
							}
							kept = one
							if !late {
								deliverIn(w, one)
							}
							return nil, nil
						})
						err := w.run(t.Context())
						w.net.On(nil)
						if kept == nil {
							return
						}
						copied.Add(1)
						if late {
							deliverIn(w, kept)
						}
						// Who has deleted an item by a single write, and finds it gone, cannot know
						// that it was not somebody else.
						unsure := c.vague() && c.ops[0].gone && errors.Is(err, repo.ErrOutcomeUnknown)
						if n := w.applied(); n != 1 || err != nil && !unsure {
							t.Errorf("request %d, %s: applied %d times: %v", nth, kept.Op, n, err)
						}
					}
				})
			}
		}
	})
	t.Logf("%d requests copied", copied.Load())
}

// stocked are two items of one repository, and others' view of them.
func stocked(t *testing.T) (w *txnCell, x, y string) {
	t.Helper()
	by := txnOps()
	w = newCell(t, transaction{ops: []txnOp{by["Update"], by["Update"]}})
	return w, w.ids[0], w.ids[1]
}

func ifStock(n int) expression.ConditionBuilder {
	return expression.Name("n").GreaterThanEqual(expression.Value(n))
}

// What a condition has refused beside a part that met others may be what a copy has made:
// that is no failed condition.
func TestAConditionBesideAConflict(t *testing.T) {
	take := expression.Set(expression.Name("n"), expression.Name("n").Minus(expression.Value(start)))
	for _, applied := range []bool{true, false} {
		w, x, y := stocked(t)
		w.cfg.Wait = repo.Wait{Min: time.Millisecond, Max: time.Millisecond}
		firstCommit(w, func(one *fault.Copy) (*http.Response, error) {
			if applied {
				deliverIn(w, one)
			} else {
				rig.Must(w.peer.o.Update(t.Context(), thingKey(y), func(_ context.Context, v *thing) error { v.N = 0; return nil }))(t)
			}
			lapse(one) // as in another Region, or by a service that has no tokens
			return one.DeliverAnd(func(said map[string]any) {
				if reasons, ok := said["CancellationReasons"].([]any); ok {
					reasons[0] = map[string]any{"Code": "TransactionConflict", "Message": "injected"}
				}
			})
		})
		runs := 0
		err := w.cfg.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			runs++
			if _, err := w.mine.o.In(tx).Update(ctx, thingKey(x), more); err != nil {
				return err
			}
			return w.mine.o.In(tx).Apply(ctx, thingKey(y), take, ifStock(start))
		})
		item := rig.Must(w.peer.o.Get(t.Context(), thingKey(x)))(t)
		switch {
		case applied && (err != nil || item.N != start+1):
			t.Errorf("applied by a copy: %d, %v", item.N, err)
		case !applied && (!errors.Is(err, repo.ErrCondition) || item.N != start):
			t.Errorf("refused for good: %d, %v", item.N, err)
		}
	}
}

// A lock that refuses a transaction keeps its copies out, too: what it had read has
// another lockToken then.
func TestATransactionThatALockHasRefused(t *testing.T) {
	w, x, y := stocked(t)
	locker := rig.Must(lockedread.New(w.peer.o.Table(), lockedread.Config{}))(t)
	var held interface {
		Release(context.Context) error
	}
	commits := w.commits()
	var kept []*fault.Copy
	w.net.On(func(one *fault.Copy) (*http.Response, error) {
		if commits(one) {
			if held == nil {
				held = rig.Must(locker.Acquire(t.Context(), thingKey(y)))(t)
			}
			kept = append(kept, one)
		}
		return nil, nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := w.run(ctx)
	w.net.On(nil)
	if v := repo.VerdictOf(err); v != repo.NotWritten || len(kept) == 0 {
		t.Errorf("%v after %d commits: %v", v, len(kept), err)
	}
	rig.Is(t, held.Release(t.Context()))
	for _, one := range kept {
		lapse(one)
		deliverIn(w, one)
	}
	rig.Equal(t, w.applied(), 0, "applied times behind its verdict; %s", x)
}

// That there is no item is only assumed by Create: what a closure returns because of that
// is not believed before somebody has looked.
func TestAnErrorOfAnAssumedCreate(t *testing.T) {
	w, x, _ := stocked(t)
	mine := errors.New("it was not there")
	runs := 0
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		runs++
		if _, err := w.mine.o.In(tx).Create(ctx, thing{ID: x}); err != nil {
			return err
		}
		return mine
	})
	if !errors.Is(err, repo.ErrExists) || runs != 2 {
		t.Errorf("%d runs: %v", runs, err)
	}
	err = txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		if _, err := w.mine.o.In(tx).Create(ctx, thing{ID: x}); err != nil {
			return err
		}
		return w.mine.o.In(tx).Delete(ctx, thingKey(x))
	})
	rig.Is(t, err, repo.ErrExists)
}

// An id of a transaction is none of a change of one item, whatever its text.
func TestIDsOfTransactionsAndOfItems(t *testing.T) {
	w, x, y := stocked(t)
	rig.Must(w.mine.o.Once("transaction\x00order").Update(t.Context(), thingKey(x), more))(t)
	order := txn.Once("order")
	rig.Is(t, order.Run(t.Context(), w.both))
	if order.Repeated() {
		t.Error("the id of an item is taken for that of a transaction")
	}
	if n := rig.Must(w.peer.o.Get(t.Context(), thingKey(x)))(t).N; n != start+2 {
		t.Errorf("%d", n)
	}
	again := w.mine.o.Once("transaction\x00order")
	rig.Must(again.Update(t.Context(), thingKey(y), more))(t)
	if again.Repeated() {
		t.Error("the id of a transaction is taken for that of an item")
	}
	rig.Must(again.Update(t.Context(), thingKey(y), more))(t)
	if !again.Repeated() {
		t.Error("the id of an item is forgotten")
	}
}

// both changes both items.
func (w *txnCell) both(ctx context.Context, tx *txn.Tx) error {
	for _, id := range w.ids {
		if _, err := w.mine.o.In(tx).Update(ctx, thingKey(id), more); err != nil {
			return err
		}
	}
	return nil
}

// Others' writes, each of another process, cover what a commit has left, and the mark of one
// whom a lock by hand has refused takes a place among them: that there are as many ids as the
// version has moved by does not say that all writes are in sight.
func TestAMarkIsNoWriteOfOthers(t *testing.T) {
	w, x, y := stocked(t)
	process := func() *optimistic.Repository[thing] {
		return rig.Must(optimistic.New(shopIn(t, rig.Client()).o.Table(), optimistic.Config{FailLocked: true}))(t)
	}
	by, at := expression.Name("lockedBy"), expression.Name("lockTime")
	byHand := func(id string, update expression.UpdateBuilder) {
		expr := rig.Must(expression.NewBuilder().WithUpdate(update).Build())(t)
		_, err := rig.Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String(w.peer.o.Table().Name()),
			Key: rig.Must(w.peer.o.Table().EncodeKey(thingKey(id)))(t), UpdateExpression: expr.Update(),
			ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values()})
		rig.Is(t, err)
	}
	var once sync.Once
	w.net.On(func(one *fault.Copy) (*http.Response, error) {
		if one.Op != "TransactWriteItems" {
			return nil, nil
		}
		once.Do(func() {
			deliverIn(w, one)
			for _, id := range []string{x, y} {
				for range 7 {
					rig.Must(process().Update(t.Context(), thingKey(id), other))(t)
				}
				_, err := process().Update(t.Context(), thingKey(id), func(ctx context.Context, v *thing) error {
					byHand(id, expression.Set(by, expression.Value("joe")).Set(at, expression.Value(time.Now().Add(time.Hour).Unix())))
					return other(ctx, v)
				})
				rig.Is(t, err, repo.ErrLocked)
				byHand(id, expression.Remove(by).Remove(at))
			}
		})
		return nil, errCutOff
	})
	err := w.run(t.Context())
	w.net.On(nil)
	if n := w.applied(); n != 1 || repo.VerdictOf(err) == repo.NotWritten {
		t.Errorf("applied %d times, and told %v", n, err)
	}
}
