package lock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Attempts that met a transaction at the item do not use up the client's policy, but
// do not go on for ever either.
func TestRepeatsOfWritesThatTransactionsRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Config{Lease: 30 * time.Second, Wait: repo.Wait{Min: time.Millisecond, Max: time.Second}}
		transaction, lost := error(&types.TransactionConflictException{}), errors.New("no answer")
		for name, of := range map[string]struct {
			err  error
			want int
		}{"a transaction is at it": {transaction, ddb.MostOngoing + 3}, "no answer": {lost, 3}} {
			var r repeats
			began, n := time.Now(), 1
			for r.again(t.Context(), c, &ddb.Result{Err: of.err, Again: true, Clean: true, Limit: 3}) {
				n++
			}
			if n != of.want {
				t.Errorf("%s: %d attempts, want %d", name, n, of.want)
			}
			if passed := time.Since(began); passed > 20*time.Second {
				t.Errorf("%s: it slept for %v", name, passed)
			}
			if r.again(context.WithoutCancel(t.Context()), c, &ddb.Result{Err: of.err, Clean: true}) {
				t.Errorf("%s: a final refusal is repeated", name)
			}
		}
	})
}

// A partition that is busy for a while does not make those give up who wait for what
// is on it, and one that is busy for good does.
func TestRepeatsOfWritesThatAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Config{Lease: 30 * time.Second, Wait: repo.Wait{Min: 10 * time.Millisecond, Max: time.Second}}
		for limit, most := range map[int]int{1: 1, 3: 1000} {
			var r repeats
			began, n := time.Now(), 1
			for r.again(t.Context(), c, &ddb.Result{Err: &types.ProvisionedThroughputExceededException{}, Again: true, Clean: true, Limit: limit}) {
				n++
			}
			took := time.Since(began)
			if r.sent != n { // one that was repeated has slept, and says nothing of how long a look takes
				t.Errorf("a policy of %d attempts: %d sent, %d noted", limit, n, r.sent)
			}
			if n > most || limit == 1 && took > 0 || limit > 1 && (n < 10*limit || took < c.Lease/3 || took > c.Lease/2) {
				t.Errorf("a policy of %d attempts: %d in %v", limit, n, took)
			}
		}
	})
}
