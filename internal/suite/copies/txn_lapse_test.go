package copies_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// patient is a policy whose sleeps are long.
type patient struct {
	aws.Retryer
	delay time.Duration
}

func (p patient) RetryDelay(int, error) (time.Duration, error) { return p.delay, nil }

// forgetful is a service that knows a token for ten minutes, and a network that loses the
// answers to transactions; or that tells of a conflict in their place.
type forgetful struct {
	next     fault.Doer
	conflict bool
	tokens   map[string]time.Time
	sent     []time.Duration
	began    time.Time
}

func (f *forgetful) Do(req *http.Request) (*http.Response, error) {
	c := fault.NewCopier(f.next)
	c.On(func(one *fault.Copy) (*http.Response, error) {
		if one.Op != "TransactWriteItems" {
			return nil, nil
		}
		f.sent = append(f.sent, time.Since(f.began))
		known := string(one.Body[:min(len(one.Body), 4096)])
		if at, ok := f.tokens[known]; !ok {
			f.tokens[known] = time.Now()
		} else if time.Since(at) > 10*time.Minute {
			lapse(one)
		}
		_, err := one.Deliver()
		if f.conflict {
			return one.Met("TransactionConflict", 0), err
		}
		return nil, errors.Join(errors.New("connection reset"), err)
	})
	return c.Do(req)
}

// A transaction is not sent again when the service may have forgotten its token: what
// reads nothing would be applied a second time.
func TestATransactionIsNotSentBeyondItsToken(t *testing.T) {
	by := txnOps()
	for _, conflict := range []bool{false, true} {
		for _, delay := range []time.Duration{4 * time.Minute, 11 * time.Minute} {
			w := newCell(t, transaction{name: "Apply, Apply", ops: []txnOp{by["Apply"], by["Apply"]}})
			rig.InVirtualTime(t, 4, func(t *testing.T, network fault.Doer) {
				net := &forgetful{next: network, conflict: conflict, tokens: map[string]time.Time{}, began: time.Now()}
				w.mine = shopIn(t, rig.Client(rig.Over(net), func(o *dynamodb.Options) { o.Retryer = patient{o.Retryer, delay} }))
				w.cfg.Wait = repo.Wait{Min: delay, Max: delay}
				err := w.run(context.Background())
				if v := repo.VerdictOf(err); v == repo.NotWritten { // written: an item shows it
					t.Errorf("%v: %v", v, err)
				}
				if last := net.sent[len(net.sent)-1]; last > 9*time.Minute || delay < 9*time.Minute && len(net.sent) < 2 {
					t.Errorf("sent at %v", net.sent)
				}
				synctest.Wait()
			})
			rig.Equal(t, w.applied(), 1, "conflict %v, sleeps of %v: applied times", conflict, delay)
		}
	}
}
