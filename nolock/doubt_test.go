package nolock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

type updateSend = func() (*dynamodb.UpdateItemOutput, error)

// counted is an order whose writers leave their ids.
type counted struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Status  string `dynamodbav:"status,omitempty"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// late is a writer of events whose first attempt stays on its way.
type late struct {
	events *nolock.Repository[counted]
	locks  *pessimistic.Repository[counted]
	direct *nolock.Repository[counted] // by a client without faults
	client *rig.Intercept
	held   *lockedread.Held[counted]
	first  *dynamodb.UpdateItemInput // what stays on its way
}

func newLate(t *testing.T, cfg nolock.Config) *late {
	t.Helper()
	b := rig.New(t)
	l := &late{client: &rig.Intercept{Client: b.Client}}
	plain := rig.Must(repo.NewTable[counted](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, plain.EnsureTable(t.Context()))
	l.direct = rig.Must(nolock.New(plain, nolock.Config{}))(t)
	l.locks = rig.Must(pessimistic.New(plain, pessimistic.Config{}))(t)
	l.events = rig.Must(nolock.New(rig.Must(repo.NewTable[counted](l.client, b.Table, repo.TableConfig{}))(t), cfg))(t)
	rig.Is(t, l.direct.Put(t.Context(), counted{ID: "o1", At: 1}))
	return l
}

// delay keeps the first attempt on its way; then comes what then does, before
// the attempt is repeated.
func (l *late) delay(then func()) {
	l.client.Update = func(n int, in *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
		if n > 1 {
			return send()
		}
		l.first = in
		then()
		return nil, rig.ErrNoAnswer
	}
}

func (l *late) lock(t *testing.T) { l.held = rig.Must(l.locks.Acquire(t.Context(), key))(t) }

// lands fails the test if the attempt that was delayed does not fit any more.
func (l *late) lands(t *testing.T) {
	t.Helper()
	rig.Is(t, l.held.Release(t.Context()))
	if _, err := l.client.Client.UpdateItem(t.Context(), l.first); err != nil {
		t.Errorf("the attempt does not fit any more, %v: the test shows nothing", err)
	}
}

// An event whose first attempt is on its way, and finds a lock when it is
// repeated, is applied when the lock is released without a change. Whatever the
// call ends with before that, it may not say that nothing was written.
func TestAnEventThatMayStillLandIsNotRefused(t *testing.T) {
	t.Parallel()
	writes := map[string]func(context.Context, *nolock.Repository[counted]) error{
		"Put": func(ctx context.Context, r *nolock.Repository[counted]) error {
			return r.Put(ctx, counted{ID: "o1", Status: "new", At: 5})
		},
		"Apply": func(ctx context.Context, r *nolock.Repository[counted]) error {
			return r.Apply(ctx, key, 5, expression.Set(expression.Name("status"), expression.Value("new")))
		},
		"DeleteAt": func(ctx context.Context, r *nolock.Repository[counted]) error { return r.DeleteAt(ctx, key, 5) },
	}
	ends := map[string]struct {
		cfg nolock.Config
		// meet is what befalls the nth write from the one that meets the lock.
		meet func(n int, leave func(), send updateSend) (*dynamodb.UpdateItemOutput, error)
		also error
	}{
		"FailLocked":    {cfg: nolock.Config{FailLocked: true}},
		"Wait.Attempts": {cfg: nolock.Config{Wait: repo.Wait{Attempts: 1}}},
		"the context ends while it waits": {
			meet: func(_ int, leave func(), send updateSend) (*dynamodb.UpdateItemOutput, error) {
				defer leave()
				return send()
			}, also: context.Canceled},
		"the next try is refused": {
			meet: func(n int, _ func(), send updateSend) (*dynamodb.UpdateItemOutput, error) {
				if n > 1 {
					return nil, &types.ResourceNotFoundException{}
				}
				return send()
			}},
		"the next try never leaves": {
			meet: func(n int, leave func(), send updateSend) (*dynamodb.UpdateItemOutput, error) {
				if n > 1 {
					leave()
				}
				return send()
			}, also: context.Canceled},
	}
	for write, send := range writes {
		for end, c := range ends {
			t.Run(write+", "+end, func(t *testing.T) {
				t.Parallel() // it waits out the client's backoff
				l := newLate(t, c.cfg)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				l.delay(func() { l.lock(t) })
				first := l.client.Update
				l.client.Update = func(n int, in *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
					if n > 1 && c.meet != nil {
						return c.meet(n-1, leave, send)
					}
					return first(n, in, send)
				}
				err := send(ctx, l.events)
				rig.Is(t, err, repo.ErrOutcomeUnknown)
				if errors.Is(err, repo.ErrLocked) {
					t.Errorf("it says also that nothing was written: %v", err)
				}
				if c.also != nil {
					rig.Is(t, err, c.also)
				}
				l.lands(t)
			})
		}
	}
}

// What the item shows decides: an event in doubt is not called unknown where its
// id is in the ring, or the ring from before it is.
func TestEventsInDoubtThatTheItemDecides(t *testing.T) {
	t.Parallel()
	later := func(t *testing.T, l *late) {
		rig.Must(l.locks.Update(t.Context(), key, func(_ context.Context, c *counted) error { c.At = 9; return nil }))(t)
	}
	event := counted{ID: "o1", Status: "new", At: 5}
	t.Run("applied, and overtaken", func(t *testing.T) {
		t.Parallel()
		l := newLate(t, nolock.Config{})
		l.delay(func() {
			if _, err := l.client.Client.UpdateItem(t.Context(), l.first); err != nil {
				t.Error(err)
			}
			later(t, l)
		})
		rig.Is(t, l.events.Put(t.Context(), event))
	})
	t.Run("not applied, and overtaken", func(t *testing.T) {
		t.Parallel()
		l := newLate(t, nolock.Config{})
		l.lock(t)
		l.client.Update = func(n int, _ *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
			switch n {
			case 1: // refused by the lock: what the item is, is known
				defer func() { rig.Is(t, l.held.Release(t.Context())) }()
			case 2:
				later(t, l)
				return nil, rig.ErrNoAnswer
			}
			return send()
		}
		rig.Is(t, l.events.Put(t.Context(), event), repo.ErrStale)
	})
	t.Run("overtaken by another event", func(t *testing.T) {
		t.Parallel()
		l := newLate(t, nolock.Config{})
		l.delay(func() { rig.Is(t, l.direct.Put(t.Context(), counted{ID: "o1", At: 9})) })
		rig.Is(t, l.events.Put(t.Context(), event), repo.ErrOutcomeUnknown)
	})
	t.Run("released in time", func(t *testing.T) {
		t.Parallel()
		l := newLate(t, nolock.Config{})
		l.delay(func() { l.lock(t) })
		first := l.client.Update
		l.client.Update = func(n int, in *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
			if n == 2 {
				defer l.lands(t)
			}
			return first(n, in, send)
		}
		rig.Is(t, l.events.Put(t.Context(), event)) // the third try finds the first one's work
	})
}
