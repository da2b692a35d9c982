package once_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.MainOr(m, child) }

type receipt struct {
	Number int    `dynamodbav:"number"`
	Text   string `dynamodbav:"text"`
}

// store is a table and a store in it.
type store struct {
	*rig.Rig
	*once.Store
}

// No machine is so slow that a lease ends in the middle of a test, but where it is to.
func newStore(t testing.TB) *store {
	t.Helper()
	s := &store{Rig: rig.New(t)}
	s.Store = s.open(t, s.Client, once.Config{Lease: time.Minute, Wait: repo.Wait{Max: 20 * time.Millisecond}})
	rig.Is(t, s.EnsureTable(t.Context()))
	s.Count.Reset()
	return s
}

func (s *store) open(t testing.TB, client repo.Client, cfg once.Config) *once.Store {
	t.Helper()
	return rig.Must(once.New(client, s.Table, cfg))(t)
}

func rawKey(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
}

// set writes to a row as a stranger does.
func (s *store) set(t testing.TB, id, update string, n int64) {
	t.Helper()
	rig.Must(s.Client.UpdateItem(context.WithoutCancel(t.Context()), &dynamodb.UpdateItemInput{TableName: &s.Table, Key: rawKey(id), UpdateExpression: aws.String(update),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)}}}))(t)
}

// giving is an operation that counts its runs and gives the number of the run.
func giving(runs *atomic.Int64) func(context.Context, once.Run) (receipt, error) {
	return func(context.Context, once.Run) (receipt, error) {
		return receipt{Number: int(runs.Add(1)), Text: "paid"}, nil
	}
}

// must not run.
func never(t *testing.T) func(context.Context, once.Run) (receipt, error) {
	return func(context.Context, once.Run) (receipt, error) {
		t.Error("the operation runs again")
		return receipt{}, nil
	}
}

// The first call runs the operation, the others get its result: two requests, then one.
func TestDo(t *testing.T) {
	s := newStore(t)
	var runs atomic.Int64
	var run once.Run
	for i, want := range []int{2, 1, 1} {
		s.Count.Reset()
		got, err := once.Do(t.Context(), s.Store, "order", func(ctx context.Context, r once.Run) (receipt, error) {
			run = r
			return giving(&runs)(ctx, r)
		})
		rig.Is(t, err)
		if got != (receipt{1, "paid"}) || s.Count.Total() != want {
			t.Errorf("call %d: %+v, %v", i, got, s.Count.Counts())
		}
	}
	if runs.Load() != 1 || run.ID != "order" || run.Token == 0 {
		t.Errorf("%d runs, %+v", runs.Load(), run)
	}
	row := s.Item(t, rawKey("order"))
	if row["expiresAt"] == nil || row["result"] == nil {
		t.Errorf("%v", row)
	}
	if lease, ok := row["lockLease"].(*types.AttributeValueMemberN); !ok || lease.Value != "3600" {
		t.Errorf("the lock that stays does not say for how long it is left: %v", row["lockLease"])
	}
	got, err := once.Do(t.Context(), s.Store, "another", giving(&runs))
	rig.Is(t, err)
	rig.Equal(t, got.Number, 2, "%+v", got)
}

// An operation that fails, panics or whose caller has gone releases the id: it is tried
// again. One that succeeds is completed, although its caller has gone.
func TestWhatReleasesAnID(t *testing.T) {
	s := newStore(t)
	failed := errors.New("failed")
	_, err := once.Do(t.Context(), s.Store, "order", func(context.Context, once.Run) (receipt, error) { return receipt{1, "wrong"}, failed })
	rig.Is(t, err, failed)
	if s.Count.Total() != 2 || len(s.Item(t, rawKey("order"))) != 0 {
		t.Errorf("%v, %v", s.Count.Counts(), s.Item(t, rawKey("order")))
	}
	for _, of := range []error{once.ErrNoResult, repo.ErrDone, repo.ErrOutcomeUnknown} { // of a call inside it
		_, err := once.Do(t.Context(), s.Store, "order", func(context.Context, once.Run) (receipt, error) { return receipt{}, of })
		if rig.Is(t, err, of); repo.VerdictOf(err) != repo.NotWritten {
			t.Errorf("the id is released, and %v says %v", err, repo.VerdictOf(err))
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = once.Do(t.Context(), s.Store, "order", func(context.Context, once.Run) (receipt, error) { panic("wrong") })
	}()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = once.Do(ctx, s.Store, "order", func(ctx context.Context, _ once.Run) (receipt, error) {
		cancel()
		<-ctx.Done()
		return receipt{}, ctx.Err()
	})
	rig.Is(t, err, context.Canceled)
	ctx, cancel = context.WithCancel(t.Context())
	var runs atomic.Int64
	got, err := once.Do(ctx, s.Store, "order", func(ctx context.Context, r once.Run) (receipt, error) {
		defer cancel()
		return giving(&runs)(ctx, r)
	})
	rig.Is(t, err)
	again, err := once.Do(t.Context(), s.Store, "order", never(t))
	rig.Is(t, err)
	if got != again || got.Number != 1 {
		t.Errorf("%+v, %+v", got, again)
	}
}

// While one runs the others wait, and get its result; also where it fails, and one of
// them runs then.
func TestOthersWait(t *testing.T) {
	s := newStore(t)
	failed := errors.New("failed")
	for _, outcome := range []error{nil, failed} {
		id := fmt.Sprint(outcome)
		began, gate := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			_, err := once.Do(t.Context(), s.Store, id, func(context.Context, once.Run) (receipt, error) {
				close(began)
				<-gate
				return receipt{7, "first"}, outcome
			})
			rig.Is(t, err, outcome)
		})
		<-began
		quick := s.open(t, s.Client, once.Config{Wait: repo.Wait{Attempts: 1}})
		_, err := once.Do(t.Context(), quick, id, never(t))
		rig.Is(t, err, repo.ErrLocked)
		_, err = once.Do(rig.Shortly(t), s.Store, id, never(t))
		rig.Is(t, err, repo.ErrLocked, context.DeadlineExceeded)
		s.Count.Reset()
		var runs atomic.Int64
		want := receipt{7, "first"}
		if outcome != nil {
			want = receipt{1, "paid"}
		}
		for range 8 {
			all.Go(func() {
				got, err := once.Do(t.Context(), s.Store, id, giving(&runs))
				rig.Is(t, err)
				if got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			})
		}
		rig.Await(t, "somebody looks", func() bool { return s.Count.Total() > 8 })
		close(gate)
		all.Wait()
		if n := runs.Load(); outcome == nil && n != 0 || outcome != nil && n != 1 {
			t.Errorf("%v: %d more runs", outcome, n)
		}
	}
}

// A run whose lease is over, and taken over, does not complete: the result is that of
// the run which does.
func TestOnlyTheHolderCompletes(t *testing.T) {
	s := newStore(t)
	other := s.open(t, s.Peer().Client, once.Config{})
	for what, take := range map[string]func(id string) receipt{
		"taken over": func(id string) receipt {
			s.set(t, id, "SET lockTime = :n", 1)
			return rig.Must(once.Do(t.Context(), other, id, func(context.Context, once.Run) (receipt, error) { return receipt{2, "other"}, nil }))(t)
		},
		"removed": func(id string) receipt {
			rig.Must(s.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.Table, Key: rawKey(id)}))(t)
			return receipt{}
		},
	} {
		var want receipt
		got, err := once.Do(t.Context(), s.Store, what, func(context.Context, once.Run) (receipt, error) {
			want = take(what)
			return receipt{1, "late"}, nil
		})
		rig.Is(t, err, repo.ErrLockLost)
		rig.Equal(t, got, receipt{}, "%s", what)
		if want.Number == 0 {
			continue
		}
		rig.Equal(t, rig.Must(once.Do(t.Context(), s.Store, what, never(t)))(t), want, "%s", what)
	}
	// A run that is late, but that nobody has taken over, completes.
	rig.Must(once.Do(t.Context(), s.Store, "late", func(context.Context, once.Run) (receipt, error) {
		s.set(t, "late", "SET lockTime = :n", 1)
		return receipt{1, "late"}, nil
	}))(t)
	rig.Must(once.Do(t.Context(), other, "late", never(t)))(t)
}

// A lease that cannot be renewed ends the context of the run, with the cause.
func TestALostLeaseEndsTheRun(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	cut := s.Peer()
	mine := s.open(t, cut.Client, once.Config{Lease: time.Second})
	var cause error
	_, err := once.Do(t.Context(), mine, "order", func(ctx context.Context, _ once.Run) (receipt, error) {
		cut.Always(fault.DropRequest)
		cause = rig.Ended(ctx, t)
		return receipt{}, ctx.Err()
	})
	rig.Is(t, cause, repo.ErrLockExpired)
	rig.Is(t, err, context.Canceled)
}

// A completion whose answers are all lost has been made: nothing takes it back.
func TestACompletionInDoubtStays(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	cut := s.Peer()
	mine := s.open(t, cut.Client, once.Config{Lease: 2 * time.Second})
	var runs atomic.Int64
	_, err := once.Do(t.Context(), mine, "order", func(ctx context.Context, r once.Run) (receipt, error) {
		cut.Faults(func(op string, _ int, _ []byte) fault.Kind {
			if op == "UpdateItem" {
				return fault.LoseResponse
			}
			return fault.None
		})
		return giving(&runs)(ctx, r)
	})
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	got, err := once.Do(t.Context(), s.Store, "order", never(t))
	rig.Is(t, err)
	rig.Equal(t, got.Number, 1, "%+v", got)
}

// A completion that has been made, without an answer, and whose id was forgotten and is
// another run's since, is unknown: that its row does not tell any more proves nothing.
func TestACompletionInDoubtThatIsForgotten(t *testing.T) {
	s := newStore(t)
	cut := s.Peer()
	mine := s.open(t, cut.Client, once.Config{})
	_, err := once.Do(t.Context(), mine, "order", func(context.Context, once.Run) (receipt, error) {
		cut.Faults(func(_ string, n int, _ []byte) fault.Kind {
			if n == 1 {
				return fault.LoseResponse
			}
			s.set(t, "order", "SET lockTime = :n", 1)
			rig.Must(once.Do(t.Context(), s.Store, "order", func(context.Context, once.Run) (receipt, error) { return receipt{2, "other"}, nil }))(t)
			return fault.None
		})
		return receipt{1, "mine"}, nil
	})
	rig.Is(t, err, repo.ErrOutcomeUnknown)
}

// A completion that the table throttles for longer than the client's policy bears goes on
// while the lease lasts: else the operation would be made again.
func TestAThrottledCompletion(t *testing.T) {
	s := newStore(t)
	busy := s.Peer()
	mine := s.open(t, busy.Client, once.Config{Lease: time.Minute})
	var runs, refused atomic.Int64
	got, err := once.Do(t.Context(), mine, "order", func(ctx context.Context, r once.Run) (receipt, error) {
		busy.Faults(func(string, int, []byte) fault.Kind {
			if refused.Add(1) <= 30 {
				return fault.Throttle
			}
			return fault.None
		})
		return giving(&runs)(ctx, r)
	})
	rig.Is(t, err)
	quick := s.open(t, s.Client, once.Config{Wait: repo.Wait{Attempts: 1}})
	if again := rig.Must(once.Do(t.Context(), quick, "order", never(t)))(t); got.Number != 1 || again != got || refused.Load() <= 30 {
		t.Errorf("%+v, then %+v, after %d requests", got, again, refused.Load())
	}
}

// An id is a new one when it is forgotten, and what was kept of it is out of the way: its
// result is nobody's while it runs again, and TTL does not remove it.
func TestForgotten(t *testing.T) {
	s := newStore(t)
	var runs atomic.Int64
	rig.Must(once.Do(t.Context(), s.Store, "order", giving(&runs)))(t)
	s.set(t, "order", "SET lockTime = :n, expiresAt = :n", time.Now().Add(-time.Hour).Unix())
	got, err := once.Do(t.Context(), s.Store, "order", func(ctx context.Context, r once.Run) (receipt, error) {
		if s.Item(t, rawKey("order"))["expiresAt"] != nil {
			t.Error("TTL may remove a run")
		}
		quick := s.open(t, s.Client, once.Config{Wait: repo.Wait{Attempts: 1}})
		_, err := once.Do(t.Context(), quick, "order", never(t))
		rig.Is(t, err, repo.ErrLocked)
		return giving(&runs)(ctx, r)
	})
	rig.Is(t, err)
	again := rig.Must(once.Do(t.Context(), s.Store, "order", never(t)))(t)
	if got.Number != 2 || again != got {
		t.Errorf("%+v, %+v", got, again)
	}
	// A run whose result is not kept does not give that of the one before.
	s.set(t, "order", "SET lockTime = :n", time.Now().Add(-time.Hour).Unix())
	_, err = once.Do(t.Context(), s.Store, "order", func(context.Context, once.Run) (unkept, error) { return unkept{}, nil })
	rig.Is(t, err, once.ErrNoResult)
	_, err = once.Do(t.Context(), s.Store, "order", never(t))
	rig.Is(t, err, once.ErrNoResult)
}

// TTL, which removes what has its time behind it, does not remove a run that begins where
// one is forgotten, nor its result before it is forgotten: whenever TTL comes, and whatever
// the network delivers again.
func TestTTLOfWhatIsForgotten(t *testing.T) {
	s := newStore(t)
	sent := &rig.Intercept{Client: s.Client}
	mine := s.open(t, sent, once.Config{})
	var runs atomic.Int64
	rig.Must(once.Do(t.Context(), mine, "order", giving(&runs)))(t)
	s.set(t, "order", "SET lockTime = :n, expiresAt = :n", time.Now().Add(-time.Hour).Unix())
	var copies []*dynamodb.UpdateItemInput
	sent.Update = func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		copies = append(copies, in)
		out, err := send()
		_, _ = s.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.Table, Key: rawKey("order"), ConditionExpression: aws.String("expiresAt < :now"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":now": &types.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Unix())}}})
		return out, err
	}
	got, err := once.Do(t.Context(), mine, "order", giving(&runs))
	rig.Is(t, err)
	rig.Equal(t, got.Number, 2, "%+v", got)
	for _, in := range copies {
		_, _ = s.Client.UpdateItem(t.Context(), in)
	}
	if row := s.Item(t, rawKey("order")); row["result"] == nil || row["expiresAt"] == nil {
		t.Errorf("%v", row)
	}
}

// A row that somebody has locked by hand has no token: it is waited for, and not taken
// for one that was completed without a result.
func TestLockedByHand(t *testing.T) {
	s := newStore(t)
	s.set(t, "order", "SET lockTime = :n", time.Now().Add(time.Hour).Unix())
	quick := s.open(t, s.Client, once.Config{Wait: repo.Wait{Attempts: 1}})
	_, err := once.Do(t.Context(), quick, "order", never(t))
	rig.Is(t, err, repo.ErrLocked)
}

// An item of something else in the table stays as it is: a run that failed deleted it at once,
// and TTL one that was completed.
func TestAnItemOfSomethingElse(t *testing.T) {
	s := newStore(t)
	s.set(t, "apple", "SET stock = :n", 5)
	_, err := once.Do(t.Context(), s.Store, "apple", never(t))
	rig.Is(t, err, repo.ErrSchema)
	if got := s.Item(t, rawKey("apple")); got["stock"] == nil || got["expiresAt"] != nil || got["lockedBy"] != nil {
		t.Errorf("it is %v", got)
	}
}

// unkept is a result that has no encoding.
type unkept struct{}

func (unkept) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return nil, errors.New("not for others")
}

// What cannot be kept, or read, is said; the operation is completed all the same.
func TestResults(t *testing.T) {
	s := newStore(t)
	long := strings.Repeat("x", 396<<10+1)
	got, err := once.Do(t.Context(), s.Store, "long", func(context.Context, once.Run) (string, error) { return long, nil })
	rig.Is(t, err, once.ErrNoResult, repo.ErrTooLarge)
	if got != long {
		t.Error("the result is not returned")
	}
	for range 2 {
		_, err = once.Do(t.Context(), s.Store, "long", func(context.Context, once.Run) (string, error) { t.Error("it runs again"); return "", nil })
		rig.Is(t, err, once.ErrNoResult)
	}
	most := strings.Repeat("x", 396<<10)
	id := strings.Repeat("i", 2048)
	rig.Must(once.Do(t.Context(), s.Store, id, func(context.Context, once.Run) (string, error) { return most, nil }))(t)
	if rig.Must(once.Do(t.Context(), s.Store, id, func(context.Context, once.Run) (string, error) { return "", nil }))(t) != most {
		t.Error("the largest result is another")
	}
	_, err = once.Do(t.Context(), s.Store, "bad", func(context.Context, once.Run) (unkept, error) { return unkept{}, nil })
	rig.Is(t, err, once.ErrNoResult, repo.ErrSchema)
	rig.Must(once.Do(t.Context(), s.Store, "text", func(context.Context, once.Run) (string, error) { return "text", nil }))(t)
	_, err = once.Do(t.Context(), s.Store, "text", func(context.Context, once.Run) (int, error) { return 0, nil })
	rig.Is(t, err, repo.ErrSchema)
	_, err = once.Do(t.Context(), s.Store, "bytes", func(context.Context, once.Run) ([]byte, error) { return []byte("longer than four"), nil })
	rig.Is(t, err)
	_, err = once.Do(t.Context(), s.Store, "bytes", func(context.Context, once.Run) ([4]byte, error) { return [4]byte{}, nil })
	rig.Is(t, err, repo.ErrSchema)
	for range 2 { // nothing is a result too
		rig.Must(once.Do(t.Context(), s.Store, "nothing", func(context.Context, once.Run) (struct{}, error) { return struct{}{}, nil }))(t)
		rig.Must(once.Do(t.Context(), s.Store, "nil", func(context.Context, once.Run) (*int, error) { return nil, nil }))(t)
	}
}

func TestBadInput(t *testing.T) {
	s := newStore(t)
	for _, id := range []string{"", strings.Repeat("i", 2049)} {
		_, err := once.Do(t.Context(), s.Store, id, never(t))
		rig.Is(t, err, repo.ErrKey)
	}
	_, err := once.Do[int](t.Context(), s.Store, "id", nil)
	rig.Is(t, err, repo.ErrConfig)
	for _, none := range []*once.Store{nil, {}, (*once.Store)(nil).WithFingerprint([]byte("x"))} {
		_, err := once.Do(t.Context(), none, "id", never(t))
		rig.Is(t, err, repo.ErrConfig)
	}
	for _, cfg := range []once.Config{{Lease: 1}, {Owner: "\xff"}, {Wait: repo.Wait{Attempts: -1}}, {Lease: time.Second, Table: repo.TableConfig{AttemptTimeout: time.Second}},
		{Table: repo.TableConfig{Remember: 1}}, {Table: repo.TableConfig{Attributes: repo.Attributes{Writers: "done"}}}} {
		_, err := once.New(s.Client, s.Table, cfg)
		rig.Is(t, err, repo.ErrConfig)
	}
	if s.Count.Total() != 0 {
		t.Error("something was sent")
	}
}

// rash is a result whose encoding panics, or ends its goroutine.
type rash struct{ Ends bool }

func (r rash) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	if r.Ends {
		runtime.Goexit()
	}
	panic("rash")
}

// A result whose encoding panics is not kept. The operation is completed: it does not run
// again, and nobody waits for it any more.
func TestPanicOfAnEncoder(t *testing.T) {
	s := newStore(t)
	for id, result := range map[string]rash{"panics": {}, "ends": {true}} {
		var err error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, err = once.Do(t.Context(), s.Store, id, func(context.Context, once.Run) (rash, error) { return result, nil })
		}()
		<-ended
		rig.Is(t, err, once.ErrNoResult, repo.ErrSchema)
		quick := s.open(t, s.Client, once.Config{Wait: repo.Wait{Attempts: 1}})
		_, err = once.Do(t.Context(), quick, id, never(t))
		rig.Is(t, err, once.ErrNoResult)
	}
}
