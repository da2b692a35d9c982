package pessimistic_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

type stock struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Count int    `dynamodbav:"count"`
}

var key = repo.Key{Partition: "apple"}

func TestMain(m *testing.M) { rig.Main(m) }

func open(t *testing.T, cfg pessimistic.Config) (*pessimistic.Repository[stock], *repo.Table[stock]) {
	t.Helper()
	b := rig.New(t)
	table := rig.Must(repo.NewTable[stock](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	r := rig.Must(pessimistic.New(table, cfg))(t)
	if r.Table() != table {
		t.Error("the repository has another table than the one it was made of")
	}
	rig.Must(r.Create(t.Context(), stock{ID: "apple", Count: 10}))(t)
	return r, table
}

// wantFree demands that nobody holds the item and that its count is as given.
func wantFree(t *testing.T, table *repo.Table[stock], count int) {
	t.Helper()
	if lock, err := table.Inspect(t.Context(), key); err != nil || lock.Held {
		t.Errorf("still held: %+v, %v", lock, err)
	}
	if got, err := table.Get(t.Context(), key); err != nil || got.Count != count {
		t.Errorf("%+v, %v; want count %d", got, err, count)
	}
}

func TestPanicReleasesTheLockAndGoesOn(t *testing.T) {
	r, table := open(t, pessimistic.Config{})
	func() {
		defer func() {
			rig.Equal(t, recover(), "boom", "recovered")
		}()
		_, _ = r.Update(t.Context(), key, func(_ context.Context, s *stock) error { s.Count = 0; panic("boom") })
	}()
	wantFree(t, table, 10)
}

// A client that panics in a commit, or ends its goroutine, harms nobody who waits for the lock in
// its process: the next one was told that it had the lock, which it had not, where the commit had
// passed it on.
func TestACommitByAClientThatPanics(t *testing.T) {
	for name, c := range map[string]struct {
		delivered, transaction bool
		end                    func()
	}{
		"panic before": {false, false, func() { panic("the client") }}, "panic behind it": {true, false, func() { panic("the client") }},
		"end before": {false, false, runtime.Goexit}, "end behind it": {true, false, runtime.Goexit},
		"panic behind a transaction": {true, true, func() { panic("the client") }}, "panic before a transaction": {false, true, func() { panic("the client") }},
	} {
		t.Run(name, func(t *testing.T) {
			_, table := open(t, pessimistic.Config{})
			rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
				copies := fault.NewCopier(&rig.Mortal{Next: network, Latency: time.Millisecond})
				own := rig.Must(repo.NewTable[stock](rig.Client(rig.Over(copies)), table.Name(), repo.TableConfig{}))(t)
				r := rig.Must(pessimistic.New(own, pessimistic.Config{}))(t)
				first := true
				copies.On(func(one *fault.Copy) (*http.Response, error) {
					if first && (strings.Contains(string(one.Body), ":v8") || one.Op == "TransactWriteItems") {
						if first = false; c.delivered {
							rig.Must(one.Deliver())(t)
						}
						c.end()
					}
					return nil, nil
				})
				began := time.Now()
				ended := make(chan struct{})
				next := make(chan error, 1)
				go func() {
					defer close(ended)
					defer func() { _ = recover() }()
					change := func(_ context.Context, s *stock) error {
						go func() {
							_, err := r.Update(context.Background(), key, func(_ context.Context, s *stock) error { s.Count++; return nil })
							next <- err
						}()
						time.Sleep(time.Second)
						s.Count++
						return nil
					}
					if !c.transaction {
						_, _ = r.Update(context.Background(), key, change)
						return
					}
					_ = txn.Run(context.Background(), func(ctx context.Context, tx *txn.Tx) error {
						_, err := r.In(tx).Update(ctx, key, change)
						rig.Must(r.In(tx).Create(ctx, stock{ID: "pear"}))(t)
						return err
					})
				}()
				<-ended
				rig.Is(t, <-next)
				if took := time.Since(began); took > 40*time.Second || first {
					t.Errorf("after %v; the client has panicked: %v", took, !first)
				}
			})
			want := 11
			if c.delivered {
				want = 12
			}
			rig.Equal(t, rig.Must(table.Get(t.Context(), key))(t).Count, want, "%s", name)
		})
	}
}

// Nor does one that ends its goroutine behind a release, which left the turn with the handle: the
// next one waited for a lease, though the lock was free.
func TestAReleaseByAClientThatEndsItsGoroutine(t *testing.T) {
	_, table := open(t, pessimistic.Config{})
	h := &rig.Intercept{Client: rig.Client()}
	own := rig.Must(repo.NewTable[stock](h, table.Name(), repo.TableConfig{}))(t)
	r := rig.Must(pessimistic.New(own, pessimistic.Config{Lease: time.Hour}))(t)
	boom := errors.New("boom")
	h.Update = func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		out, err := send()
		if n == 2 {
			runtime.Goexit()
		}
		return out, err
	}
	rig.Is(t, goroutine.Apart(func() {
		_, _ = r.Update(t.Context(), key, func(context.Context, *stock) error { return boom })
	}), goroutine.ErrEnded)
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	_, err := r.Update(ctx, key, func(_ context.Context, s *stock) error { s.Count++; return nil })
	rig.Is(t, err)
}

// One that ended its goroutine while a transaction gave back the first of its locks left the other
// one held, and renewed for ever.
func TestLocksGivenBackByAClientThatEndsItsGoroutine(t *testing.T) {
	_, table := open(t, pessimistic.Config{})
	h := &rig.Intercept{Client: rig.Client()}
	own := rig.Must(repo.NewTable[stock](h, table.Name(), repo.TableConfig{}))(t)
	r := rig.Must(pessimistic.New(own, pessimistic.Config{}))(t)
	pear := repo.Key{Partition: "pear"}
	rig.Must(r.Create(t.Context(), stock{ID: "pear"}))(t)
	failed := false
	h.Update = func(_ int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		if failed {
			failed = false
			runtime.Goexit()
		}
		return send()
	}
	rig.Is(t, goroutine.Apart(func() {
		_ = txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			for _, k := range []repo.Key{key, pear} {
				rig.Must(r.In(tx).Update(ctx, k, func(context.Context, *stock) error { return nil }))(t)
			}
			failed = true
			runtime.Goexit()
			return nil
		})
	}), goroutine.ErrEnded)
	if one, other := rig.Must(table.Inspect(t.Context(), key))(t), rig.Must(table.Inspect(t.Context(), pear))(t); one.Held == other.Held {
		t.Errorf("held are %+v and %+v", one, other)
	}
}

func TestChangeThatOutlivesItsLease(t *testing.T) {
	t.Parallel()
	r, table := open(t, pessimistic.Config{Lease: time.Second})
	_, err := r.Update(t.Context(), key, func(ctx context.Context, s *stock) error {
		rig.Is(t, rig.Ended(ctx, t), repo.ErrLockExpired)
		<-time.After(1500 * time.Millisecond) // past the lease itself, not only the margin
		s.Count = 0
		return nil
	})
	rig.Is(t, err, repo.ErrLockExpired)
	wantFree(t, table, 10)
}

func TestChangeLearnsThatItsLockWasBroken(t *testing.T) {
	for name, own := range map[string]error{"and has no error": nil, "and an error of its own": errors.New("sold out")} {
		t.Run(name, func(t *testing.T) { t.Parallel(); learnOfTheBreak(t, own) })
	}
}

// learnOfTheBreak has a change fail of its broken lock, beside an error of its own, which is
// no reason to run it again.
func learnOfTheBreak(t *testing.T, own error) {
	r, table := open(t, pessimistic.Config{Lease: 6 * time.Second, Renew: true})
	_, err := r.Update(t.Context(), key, func(ctx context.Context, s *stock) error {
		lock, err := table.Inspect(ctx, key)
		if err == nil {
			err = r.Locker().Break(t.Context(), key, lock.Token) // as an operator does
		}
		if err != nil {
			return err
		}
		rig.Is(t, rig.Ended(ctx, t), repo.ErrLockLost) // the next renewal finds out
		s.Count = 0
		return own
	})
	rig.Is(t, err, repo.ErrLockLost)
	if again := repo.Retryable(err); again != (own == nil) {
		t.Errorf("%v: again %v", err, again)
	}
	wantFree(t, table, 10)
}

func TestFailuresReleaseTheLock(t *testing.T) {
	r, table := open(t, pessimistic.Config{})
	mine := errors.New("sold out")
	_, err := r.Update(t.Context(), key, func(_ context.Context, s *stock) error { s.Count = 0; return mine })
	rig.Is(t, err, mine)
	wantFree(t, table, 10)
	_, err = r.Update(t.Context(), key, func(_ context.Context, s *stock) error { s.ID = "pear"; return nil })
	rig.Is(t, err, repo.ErrFixed)
	wantFree(t, table, 10)
}

func TestSettings(t *testing.T) {
	_, table := open(t, pessimistic.Config{})
	for name, cfg := range map[string]pessimistic.Config{
		"short lease":     {Lease: time.Millisecond},
		"long lease":      {Lease: 48 * time.Hour},
		"negative lease":  {Lease: -1},
		"long owner":      {Owner: string(make([]byte, 300))},
		"wait up to less": {Wait: repo.Wait{Min: time.Second, Max: time.Millisecond}},
	} {
		if _, err := pessimistic.New(table, cfg); !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
	for _, none := range []*repo.Table[stock]{nil, {}} {
		_, err := pessimistic.New(none, pessimistic.Config{})
		rig.Is(t, err, repo.ErrConfig)
	}
}
