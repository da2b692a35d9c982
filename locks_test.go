package dynahold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
)

// This suite is for everything that excludes: whatever the kind of lock, its
// users are promised the same.

// grip is one hold, of whatever kind.
type grip struct {
	token   int64
	held    context.Context // ends with the hold
	release func(context.Context) error
}

// excluder is a program with one kind of lock.
type excluder struct {
	lock func(context.Context) (*grip, error)
	try  func(context.Context) (*grip, error)
}

// excluding is a row of the suite's table.
type excluding struct {
	name    string
	endless bool // a dead holder's lock stays until it is broken
	// open makes the table, if there is none, and a program with this lease.
	open func(t testing.TB, w *world, client *dynamodb.Client, lease time.Duration) excluder
	row  func(w *world) map[string]types.AttributeValue // key of the row that keeps the lock
}

const skew = time.Millisecond

func gripOf[L any](wrap func(L) *grip, lock func(context.Context) (L, error)) func(context.Context) (*grip, error) {
	return func(ctx context.Context) (*grip, error) {
		l, err := lock(ctx)
		if err != nil {
			return nil, err
		}
		return wrap(l), nil
	}
}

func named(mode mutex.Mode) func(t testing.TB, w *world, client *dynamodb.Client, lease time.Duration) excluder {
	return func(t testing.TB, w *world, client *dynamodb.Client, lease time.Duration) excluder {
		cfg := mutex.Config{Mode: mode, ClockSkew: skew}
		if mode == mutex.FailOpen {
			cfg.Lease, cfg.Heartbeat = lease, lease/3
		}
		l := rig.Must(mutex.New(client, w.Table, cfg))(t)
		wrap := func(l *mutex.Lock) *grip { return &grip{l.Token(), l.Context(), l.Unlock} }
		return excluder{
			lock: gripOf(wrap, func(ctx context.Context) (*mutex.Lock, error) { return l.Lock(ctx, "x") }),
			try:  gripOf(wrap, func(ctx context.Context) (*mutex.Lock, error) { return l.TryLock(ctx, "x") }),
		}
	}
}

func textKey(parts ...string) func(*world) map[string]types.AttributeValue {
	return func(*world) map[string]types.AttributeValue {
		key := map[string]types.AttributeValue{}
		for i := 0; i < len(parts); i += 2 {
			key[parts[i]] = &types.AttributeValueMemberS{Value: parts[i+1]}
		}
		return key
	}
}

// locked is the item of the row "item lock".
type locked struct {
	Name string `dynamodbav:"name" repo:"pk"`
}

func excludings() []excluding {
	return []excluding{
		{"item lock", false, func(t testing.TB, w *world, client *dynamodb.Client, lease time.Duration) excluder {
			table := rig.Must(repo.NewTable[locked](client, w.Table, repo.TableConfig{}))(t)
			l := rig.Must(lockedread.New(table, lockedread.Config{Lease: lease, Renew: true, ClockSkew: skew}))(t)
			key := repo.Key{Partition: "x"}
			wrap := func(h *lockedread.Held[locked]) *grip { return &grip{h.Token(), h.Context(), h.Release} }
			return excluder{
				lock: gripOf(wrap, func(ctx context.Context) (*lockedread.Held[locked], error) { return l.Acquire(ctx, key) }),
				try:  gripOf(wrap, func(ctx context.Context) (*lockedread.Held[locked], error) { return l.TryAcquire(ctx, key) }),
			}
		}, nil},
		{"mutex, fail-open", false, named(mutex.FailOpen), textKey("name", "x")},
		{"mutex, fail-closed", true, named(mutex.FailClosed), textKey("name", "x")},
		{"ticket", false, func(t testing.TB, w *world, client *dynamodb.Client, lease time.Duration) excluder {
			q := rig.Must(ticket.New(client, w.Table, ticket.Config{Lease: lease, ClockSkew: skew}))(t)
			wrap := func(turn *ticket.Turn) *grip { return &grip{turn.Number(), turn.Context(), turn.Done} }
			return excluder{
				lock: gripOf(wrap, func(ctx context.Context) (*ticket.Turn, error) { return q.Lock(ctx, "x") }),
				try:  gripOf(wrap, func(ctx context.Context) (*ticket.Turn, error) { return q.TryLock(ctx, "x") }),
			}
		}, textKey("queue", "/x")},
		{"permit, limit 1", false, func(t testing.TB, w *world, client *dynamodb.Client, lease time.Duration) excluder {
			s := rig.Must(semaphore.New[int](client, w.Table, semaphore.Config{Lease: lease, ClockSkew: skew}))(t)
			wrap := func(p *semaphore.Permit) *grip { return &grip{p.Token(), p.Context(), p.Release} }
			return excluder{
				lock: gripOf(wrap, func(ctx context.Context) (*semaphore.Permit, error) { return s.Acquire(ctx, "x") }),
				try:  gripOf(wrap, func(ctx context.Context) (*semaphore.Permit, error) { return s.TryAcquire(ctx, "x") }),
			}
		}, nil},
	}
}

// makeLockTable makes the table of one kind.
func makeLockTable(t testing.TB, name string) *world {
	t.Helper()
	w := &world{rig.New(t)}
	ctx := t.Context()
	var err error
	switch name {
	case "item lock":
		table := rig.Must(repo.NewTable[locked](w.Client, w.Table, repo.TableConfig{}))(t)
		if err = table.EnsureTable(ctx); err == nil {
			_, err = w.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &w.Table, Item: textKey("name", "x")(w)})
		}
	case "ticket":
		err = rig.Must(ticket.New(w.Client, w.Table, ticket.Config{}))(t).EnsureTable(ctx)
	case "permit, limit 1":
		err = rig.Must(semaphore.New[int](w.Client, w.Table, semaphore.Config{}))(t).EnsureTable(ctx)
	default:
		err = rig.Must(mutex.New(w.Client, w.Table, mutex.Config{}))(t).EnsureTable(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Count.Reset()
	return w
}

func eachLock(t *testing.T, f func(t *testing.T, w *world, e excluding)) {
	for _, e := range excludings() {
		t.Run(e.name, func(t *testing.T) { f(t, makeLockTable(t, e.name), e) })
	}
}

func TestAFreeLockIsTwoRequests(t *testing.T) {
	eachLock(t, func(t *testing.T, w *world, e excluding) {
		x := e.open(t, w, w.Client, 30*time.Second)
		for range 3 {
			w.Count.Reset()
			g := rig.Must(x.try(t.Context()))(t)
			if err := g.release(t.Context()); err != nil {
				t.Error(err)
			}
			if n := w.Count.Total(); n != 2 {
				t.Errorf("%d requests: %v", n, w.Count.Counts())
			}
		}
	})
}

func TestAHeldLockIsRefused(t *testing.T) {
	eachLock(t, func(t *testing.T, w *world, e excluding) {
		g := rig.Must(e.open(t, w, w.Client, 30*time.Second).lock(t.Context()))(t)
		other := e.open(t, w, w.Client, 30*time.Second)
		w.Count.Reset()
		_, err := other.try(t.Context())
		rig.Is(t, err, repo.ErrLocked)
		if n := w.Count.Total(); n != 1 {
			t.Errorf("%d requests for a refusal: %v", n, w.Count.Counts())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = other.lock(ctx)
		rig.Is(t, err, repo.ErrLocked)
		rig.Is(t, err, context.DeadlineExceeded)

		done, end := context.WithCancel(t.Context())
		end()
		for range 2 { // a release works although its context is done, and twice is harmless
			if err := g.release(done); err != nil {
				t.Error(err)
			}
		}
		if g.held.Err() == nil {
			t.Error("the context of the hold goes on after its release")
		}
		next := rig.Must(other.try(t.Context()))(t) // whoever gave up waiting left nothing behind
		if next.token <= g.token {
			t.Errorf("token %d after %d", next.token, g.token)
		}
	})
}

// cut is an HTTP client that can be cut off from the network.
type cut struct {
	next fault.Doer
	off  atomic.Bool
}

func (c *cut) Do(req *http.Request) (*http.Response, error) {
	if c.off.Load() {
		return nil, errors.New("cut off")
	}
	return c.next.Do(req)
}

func TestTheLockOfADeadHolder(t *testing.T) {
	eachLock(t, func(t *testing.T, w *world, e excluding) {
		t.Parallel()
		const lease = 3 * time.Second
		var wire *cut
		client := rig.Client(func(o *dynamodb.Options) { wire = &cut{next: o.HTTPClient}; o.HTTPClient = wire })
		dead := rig.Must(e.open(t, w, client, lease).lock(t.Context()))(t)
		wire.off.Store(true)
		heir := e.open(t, w, w.Client, 30*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		defer cancel()
		if e.endless {
			short, cancel := context.WithTimeout(t.Context(), lease*3/2)
			defer cancel()
			_, err := heir.lock(short)
			rig.Is(t, err, repo.ErrLocked)
			operator := rig.Must(mutex.New(w.Client, w.Table, mutex.Config{}))(t)
			if err := operator.Break(t.Context(), "x", dead.token); err != nil {
				t.Fatal(err)
			}
		}
		next := rig.Must(heir.lock(ctx))(t)
		if next.token <= dead.token {
			t.Errorf("token %d after %d", next.token, dead.token)
		}
		if !e.endless && dead.held.Err() == nil {
			t.Error("two contexts say that they hold")
		}
		wire.off.Store(false)
		rig.Is(t, dead.release(t.Context()), repo.ErrLockLost)
		if err := next.release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestLostAnswersOfLocks(t *testing.T) {
	eachLock(t, func(t *testing.T, w *world, e excluding) {
		for _, kind := range []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.CutResponse, fault.Truncate, fault.Error500, fault.Error500After, fault.Throttle} {
			for broken := range 2 { // the answer to the lock, and to the release
				t.Run(fmt.Sprint(kind, " ", broken), func(t *testing.T) {
					client := rig.Client(func(o *dynamodb.Options) {
						o.HTTPClient = fault.New(o.HTTPClient, fault.Config{Script: func(_ string, n int, _ []byte) fault.Kind {
							if n == broken {
								return kind
							}
							return fault.None
						}})
					})
					g := rig.Must(e.open(t, w, client, 30*time.Second).try(t.Context()))(t)
					if err := g.release(t.Context()); err != nil {
						t.Error(err)
					}
					g = rig.Must(e.open(t, w, w.Client, 30*time.Second).try(t.Context()))(t)
					if err := g.release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
}

func TestTokensSurviveTheRow(t *testing.T) {
	eachLock(t, func(t *testing.T, w *world, e excluding) {
		if e.row == nil {
			return // an item that is deleted cannot be locked; permits share the row with the counters of jobs
		}
		x := e.open(t, w, w.Client, 30*time.Second)
		g := rig.Must(x.try(t.Context()))(t)
		_, err := w.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &w.Table, Key: e.row(w)})
		if err != nil {
			t.Fatal(err)
		}
		next := rig.Must(x.try(t.Context()))(t)
		if next.token <= g.token {
			t.Errorf("token %d after %d", next.token, g.token)
		}
		rig.Is(t, g.release(t.Context()), repo.ErrLockLost)
		if err := next.release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A release whose context ends in its middle, before the request is on its way,
// used to leave the lock to its lease.
func TestAReleaseOutlivesItsContext(t *testing.T) {
	eachLock(t, func(t *testing.T, w *world, e excluding) {
		var atOnce func() // at the beginning of the next request
		early := func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("early",
				func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
					if now := atOnce; now != nil {
						atOnce = nil
						now()
					}
					return next.HandleInitialize(ctx, in)
				}), middleware.Before)
		}
		l := e.open(t, w, rig.Client(func(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, early) }), time.Minute)
		held := rig.Must(l.lock(t.Context()))(t)
		ctx, cancel := context.WithCancel(t.Context())
		atOnce = cancel
		if err := held.release(ctx); err != nil {
			t.Errorf("release: %v", err)
		}
		if ctx.Err() == nil {
			t.Error("the context did not end")
		}
		again := rig.Must(l.try(t.Context()))(t)
		if err := again.release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// patient is a client whose policy sleeps for an hour between two attempts, and
// whose next write of a kind is throttled once throttle was called.
func patient() (client *dynamodb.Client, throttle func()) {
	var armed atomic.Bool
	client = rig.Client(func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
			so.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Hour, nil })
		})
		o.HTTPClient = fault.New(o.HTTPClient, fault.Config{Script: func(op string, _ int, _ []byte) fault.Kind {
			if op != "GetItem" && armed.CompareAndSwap(true, false) {
				return fault.Throttle
			}
			return fault.None
		}})
	})
	return client, func() { armed.Store(true) }
}

// TestThrottledHoldersDoNotSleepForLong: the sleep before a write that ends a
// hold is repeated is not the client's, but bounded by the lease.
func TestThrottledHoldersDoNotSleepForLong(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience) // only a test that fails waits for it
	defer cancel()
	for _, row := range excludings() {
		t.Run(row.name, func(t *testing.T) {
			w := makeLockTable(t, row.name)
			client, throttle := patient()
			held := rig.Must(row.open(t, w, client, time.Hour).lock(ctx))(t)
			throttle()
			rig.Is(t, held.release(ctx))
		})
	}
	for name, cfg := range map[string]lockedread.Config{"commit": {}, "commit, fair": {Fair: true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			key := repo.Key{Partition: "p", Sort: 1}
			rig.Must(rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{}))(t).Create(ctx, Account{ID: "p", Seq: 1, At: 1}))(t)
			client, throttle := patient()
			held := rig.Must(w.locker(t, client, cfg).Acquire(ctx, key))(t)
			throttle()
			rig.Is(t, held.Extend(ctx))
			throttle()
			item := held.Item()
			item.Balance = 5
			rig.Must(held.Commit(ctx, item))(t)
			held = rig.Must(w.locker(t, client, cfg).Acquire(ctx, key))(t)
			throttle()
			rig.Is(t, held.Delete(ctx))
		})
	}
	t.Run("the end of a job", func(t *testing.T) {
		w := makeLockTable(t, "permit, limit 1")
		client, throttle := patient()
		s := rig.Must(semaphore.New[int](client, w.Table, semaphore.Config{}))(t)
		rig.Must(s.Enqueue(ctx, "x", 1))(t)
		job := rig.Must(s.Next(ctx, "x"))(t)
		throttle()
		rig.Is(t, job.Done(ctx))
	})
}
