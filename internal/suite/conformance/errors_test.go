package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// Account is an item that all strategies can keep.
type Account struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Seq     int    `dynamodbav:"seq" repo:"sk"`
	Balance int64  `dynamodbav:"balance"`
	Note    string `dynamodbav:"note,omitempty"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// ailment is why requests fail: the service's answer to every one of them, or
// what keeps them from being sent.
type ailment struct {
	code, message string
	unsent        error // of the client's credentials
	cancelled     bool  // the caller's context has ended
	unjudged      bool  // the answer says nothing of the item
}

// ailing is a client of the engine that can fall ill.
type ailing struct {
	engine dynamodb.HTTPClient
	has    atomic.Pointer[ailment] // nil: it is well
}

func (p *ailing) Do(req *http.Request) (*http.Response, error) {
	a := p.has.Load()
	if a == nil {
		return p.engine.Do(req)
	}
	_, _ = io.Copy(io.Discard, req.Body)
	body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%q}`, a.code, a.message)
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Crc32": {strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10)}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req}, nil
}

func (p *ailing) client() *dynamodb.Client {
	return rig.Client(func(o *dynamodb.Options) {
		p.engine, o.HTTPClient = o.HTTPClient, p
		well := o.Credentials
		o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			if a := p.has.Load(); a != nil && a.unsent != nil {
				return aws.Credentials{}, a.unsent
			}
			return well.Retrieve(ctx)
		})
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
			so.MaxAttempts, so.MaxBackoff, so.RateLimiter = 2, 1, ratelimit.None
		})
	})
}

// An error gets its meaning where it leaves the transport. Whichever call it ends,
// it says so once: not twice, and nothing else beside.
func TestErrorsOfTheServiceHaveTheirMeaningOnce(t *testing.T) {
	p := &ailing{}
	calls := everyCall(t, p.client())
	meanings := []error{repo.ErrNoTable, repo.ErrDenied, repo.ErrConfig, repo.ErrSchema, repo.ErrTooLarge, repo.ErrOutcomeUnknown}
	for i, c := range []struct {
		name string
		ailment
		want error // nil: none of the library's
	}{
		{"no table", ailment{code: "ResourceNotFoundException", message: "Requested resource not found"}, repo.ErrNoTable},
		{"denied", ailment{unjudged: true, code: "AccessDeniedException", message: "User is not authorized"}, repo.ErrDenied},
		{"unknown client", ailment{unjudged: true, code: "UnrecognizedClientException", message: "The security token is invalid"}, repo.ErrDenied},
		{"expired token", ailment{unjudged: true, code: "ExpiredTokenException", message: "The security token is expired"}, repo.ErrDenied},
		{"invalid", ailment{code: "ValidationException", message: "Type mismatch for key"}, repo.ErrSchema},
		{"too large", ailment{code: "ValidationException", message: "Item size to update has exceeded the maximum allowed size"}, repo.ErrTooLarge},
		{"too large together", ailment{code: "ValidationException", message: "The aggregate size of the items in the transaction exceeded 4 MBs"}, repo.ErrTooLarge},
		{"collection too large", ailment{code: "ItemCollectionSizeLimitExceededException", message: "Collection size exceeded"}, repo.ErrTooLarge},
		{"throttled", ailment{unjudged: true, code: "ProvisionedThroughputExceededException", message: "The rate is too high"}, nil},
		{"no credentials", ailment{unsent: errors.New("no credentials found")}, repo.ErrDenied},
		{"nothing to send with", ailment{unsent: errors.New("the file is broken")}, repo.ErrDenied},
		{"cancelled", ailment{cancelled: true}, nil},
	} {
		for _, call := range calls {
			if call.gives && (c.cancelled || c.code == "ProvisionedThroughputExceededException") {
				continue // it goes on all the same
			}
			t.Run(c.name+"/"+call.name, func(t *testing.T) {
				run := call.prepare(t, fmt.Sprint("key-", i))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancelled {
					cancel()
				} else {
					p.has.Store(&c.ailment)
					defer p.has.Store(nil)
				}
				err := run(ctx)
				if c.cancelled && !errors.Is(err, context.Canceled) {
					t.Fatalf("error %v", err)
				}
				var api smithy.APIError
				if c.code != "" && (!errors.As(err, &api) || api.ErrorCode() != c.code) {
					t.Fatalf("error %v: the service's own is not in it", err)
				}
				if errors.Is(err, repo.ErrOutcomeUnknown) && c.unjudged {
					// A copy may have come before; the item, which would tell, is not to be read.
					if c.want != nil && (!errors.Is(err, c.want) || strings.Count(err.Error(), c.want.Error()) != 1) || strings.Count(err.Error(), repo.ErrOutcomeUnknown.Error()) != 1 {
						t.Errorf("error %v", err)
					}
					return
				}
				for _, meaning := range meanings {
					want := 0
					if errors.Is(c.want, meaning) {
						want = 1
					}
					if n, said := count(err, meaning), strings.Count(err.Error(), meaning.Error()); n != want || said != want {
						t.Errorf("%q is %d times in the error and %d times in its text, want %d: %v", meaning, n, said, want, err)
					}
				}
			})
		}
	}
}

// count is how often an error is in the tree of another.
func count(err, target error) (n int) {
	if err == target { //nolint:errorlint // each node of the tree by itself
		return 1
	}
	switch err := err.(type) { //nolint:errorlint // the same
	case interface{ Unwrap() error }:
		return count(err.Unwrap(), target)
	case interface{ Unwrap() []error }:
		for _, e := range err.Unwrap() {
			n += count(e, target)
		}
	}
	return n
}

// call is a public call: prepare does what comes before it.
type call struct {
	name    string
	gives   bool // it gives back something that is held
	prepare func(t *testing.T, key string) func(context.Context) error
}

// everyCall is a fair share of the public calls that send something.
func everyCall(t *testing.T, client *dynamodb.Client) []call {
	t.Helper()
	table := rig.Must(repo.NewTable[Account](client, rig.New(t).Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	events := rig.Must(nolock.New(table, nolock.Config{}))(t)
	versions := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	locks := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	fair := rig.Must(pessimistic.New(table, pessimistic.Config{Fair: true, Combine: true}))(t)
	names := rig.Must(mutex.New(client, rig.New(t).Table, mutex.Config{}))(t)
	operations := rig.Must(once.New(client, rig.New(t).Table, once.Config{}))(t)
	queue := rig.Must(ticket.New(client, rig.New(t).Table, ticket.Config{}))(t)
	work := fixture.OpenWork[int](t, client, rig.New(t).Table, jobs.Config{})
	for _, ensure := range []func(context.Context) error{names.EnsureTable, operations.EnsureTable, queue.EnsureTable, work.EnsureTable} {
		rig.Is(t, ensure(t.Context()))
	}
	t.Cleanup(func() { _ = queue.Close(context.Background()) })

	at := func(id string) repo.Key { return repo.Key{Partition: id, Sort: 1} }
	change := func(_ context.Context, a *Account) error { a.Balance++; return nil }
	stored := func(t *testing.T, id string) Account {
		t.Helper()
		_ = versions.Delete(t.Context(), at(id))
		return rig.Must(versions.Create(t.Context(), Account{ID: id, Seq: 1, At: 1}))(t)
	}
	plain := func(name string, do func(ctx context.Context, id string) error) call {
		return call{name, false, func(_ *testing.T, id string) func(context.Context) error {
			return func(ctx context.Context) error { return do(ctx, id) }
		}}
	}
	onItem := func(name string, do func(context.Context, Account) error) call {
		return call{name, false, func(t *testing.T, id string) func(context.Context) error {
			item := stored(t, name+id)
			return func(ctx context.Context) error { return do(ctx, item) }
		}}
	}
	onHeld := func(name string, gives bool, do func(context.Context, *lockedread.Held[Account]) error) call {
		return call{name, gives, func(t *testing.T, id string) func(context.Context) error {
			stored(t, name+id)
			held := rig.Must(locks.TryAcquire(t.Context(), at(name+id)))(t)
			return func(ctx context.Context) error { return do(ctx, held) }
		}}
	}
	onLock := func(name string, gives bool, do func(ctx context.Context, l *mutex.Lock, name string) error) call {
		return call{name, gives, func(t *testing.T, id string) func(context.Context) error {
			held := rig.Must(names.TryLock(t.Context(), name+id))(t)
			return func(ctx context.Context) error { return do(ctx, held, name+id) }
		}}
	}
	return []call{
		plain("Get", func(ctx context.Context, id string) error { _, err := table.Get(ctx, at(id)); return err }),
		plain("Inspect", func(ctx context.Context, id string) error { _, err := table.Inspect(ctx, at(id)); return err }),
		plain("Query", func(ctx context.Context, id string) error { return firstError(table.Query(ctx, id)) }),
		plain("EnsureTable", func(ctx context.Context, _ string) error { return table.EnsureTable(ctx) }),

		plain("nolock.Put", func(ctx context.Context, id string) error { return events.Put(ctx, Account{ID: id, Seq: 1, At: 9}) }),
		plain("nolock.Apply", func(ctx context.Context, id string) error {
			return events.Apply(ctx, at(id), 9, expression.Set(expression.Name("note"), expression.Value("x")))
		}),
		plain("nolock.DeleteAt", func(ctx context.Context, id string) error { return events.DeleteAt(ctx, at(id), 9) }),
		onItem("nolock.Update", func(ctx context.Context, a Account) error { _, err := events.Update(ctx, at(a.ID), change); return err }),
		onItem("nolock.Delete", func(ctx context.Context, a Account) error { return events.Delete(ctx, at(a.ID)) }),

		plain("optimistic.Create", func(ctx context.Context, id string) error {
			_, err := versions.Create(ctx, Account{ID: id, Seq: 1, At: 9})
			return err
		}),
		onItem("optimistic.Save", func(ctx context.Context, a Account) error { _, err := versions.Save(ctx, a); return err }),
		onItem("optimistic.Remove", func(ctx context.Context, a Account) error { return versions.Remove(ctx, a) }),
		onItem("optimistic.Update", func(ctx context.Context, a Account) error {
			_, err := versions.Update(ctx, at(a.ID), change)
			return err
		}),

		onItem("pessimistic.Update", func(ctx context.Context, a Account) error { _, err := locks.Update(ctx, at(a.ID), change); return err }),
		onItem("pessimistic.Delete", func(ctx context.Context, a Account) error { return locks.Delete(ctx, at(a.ID)) }),
		plain("pessimistic.Upsert", func(ctx context.Context, id string) error { _, err := locks.Upsert(ctx, at(id), change); return err }),
		onItem("fair Update", func(ctx context.Context, a Account) error { _, err := fair.Update(ctx, at(a.ID), change); return err }),
		onItem("TryAcquire", func(ctx context.Context, a Account) error { _, err := locks.TryAcquire(ctx, at(a.ID)); return err }),
		onHeld("Extend", false, func(ctx context.Context, h *lockedread.Held[Account]) error { return h.Extend(ctx) }),
		onHeld("Commit", true, func(ctx context.Context, h *lockedread.Held[Account]) error {
			item := h.Item()
			item.Balance++
			_, err := h.Commit(ctx, item)
			return err
		}),
		onHeld("Delete of a hold", true, func(ctx context.Context, h *lockedread.Held[Account]) error { return h.Delete(ctx) }),
		onHeld("Break", false, func(ctx context.Context, h *lockedread.Held[Account]) error {
			return locks.Locker().Break(ctx, at(h.Item().ID), h.Token())
		}),

		plain("mutex.TryLock", func(ctx context.Context, id string) error { _, err := names.TryLock(ctx, id); return err }),
		plain("mutex.LockAll", func(ctx context.Context, id string) error { _, err := names.LockAll(ctx, id, id+"b"); return err }),
		plain("mutex.List", func(ctx context.Context, _ string) error { return firstError(names.List(ctx)) }),
		onLock("mutex.SetPayload", false, func(ctx context.Context, l *mutex.Lock, _ string) error { return l.SetPayload(ctx, []byte("x")) }),
		onLock("mutex.Break", false, func(ctx context.Context, l *mutex.Lock, name string) error { return names.Break(ctx, name, l.Token()) }),
		onLock("mutex.Unlock", true, func(ctx context.Context, l *mutex.Lock, _ string) error { return l.Unlock(ctx) }),

		plain("once.Do", func(ctx context.Context, id string) error {
			_, err := once.Do(ctx, operations, id, func(context.Context, once.Run) (int, error) { return 1, nil })
			return err
		}),
		{"completion of once.Do", true, func(t *testing.T, id string) func(context.Context) error {
			began, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				_, err := once.Do(t.Context(), operations, "completed "+id, func(context.Context, once.Run) (int, error) {
					close(began)
					<-end
					return 1, nil
				})
				ended <- err
			}()
			select {
			case <-began:
			case err := <-ended:
				t.Fatal(err)
			}
			return func(context.Context) error { close(end); return <-ended }
		}},

		plain("ticket.TryLock", func(ctx context.Context, id string) error { _, err := queue.TryLock(ctx, id); return err }),
		plain("ticket.Join", func(ctx context.Context, id string) error { _, err := queue.Join(ctx, id); return err }),
		plain("ticket.List", func(ctx context.Context, id string) error { _, err := queue.List(ctx, id); return err }),

		plain("semaphore.TryAcquire", func(ctx context.Context, id string) error { _, err := work.TryAcquire(ctx, id); return err }),
		plain("semaphore.Permits", func(ctx context.Context, id string) error { _, err := work.Permits(ctx, id); return err }),
		plain("semaphore.Resource", func(ctx context.Context, id string) error { _, err := work.OfPermits.Resource(ctx, id); return err }),
		plain("jobs.Enqueue", func(ctx context.Context, id string) error { _, err := work.Enqueue(ctx, id, 1); return err }),
		plain("jobs.Next", func(ctx context.Context, id string) error { _, err := work.Next(ctx, id); return err }),
		plain("jobs.SetLimit", func(ctx context.Context, id string) error { return work.SetLimit(ctx, id, 3) }),
		plain("jobs.Forget", work.Forget),
		plain("jobs.Resource", func(ctx context.Context, id string) error { _, err := work.Resource(ctx, id); return err }),
		plain("jobs.Resources", func(ctx context.Context, _ string) error { return firstError(work.Resources(ctx)) }),
		plain("jobs.Jobs", func(ctx context.Context, id string) error { return firstError(work.Jobs(ctx, id)) }),
	}
}

// firstError is that with which an iteration ends.
func firstError[V any](all iter.Seq2[V, error]) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}
