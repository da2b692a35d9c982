package dynahold_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// What was wrong once with locks that are passed on, or given up.

// hashed does not fit an item whose sum is longer.
type hashed struct {
	ID      string  `dynamodbav:"id" repo:"pk"`
	Seq     int     `dynamodbav:"seq" repo:"sk"`
	Sum     [2]byte `dynamodbav:"sum"`
	N       int     `dynamodbav:"n"`
	Version int64   `dynamodbav:"version" repo:"version"`
}

// The lock of an item that does not fit the type was passed on without the
// item: the next Upsert wrote a new one over it.
func TestAnItemThatDoesNotFitIsNotOverwritten(t *testing.T) {
	for name, cfg := range map[string]pessimistic.Config{"plain": {}, "combining": {Combine: true}, "fair": {Fair: true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.Table, Item: map[string]types.AttributeValue{
				"id": &types.AttributeValueMemberS{Value: "p"}, "seq": &types.AttributeValueMemberN{Value: "1"},
				"n": &types.AttributeValueMemberN{Value: "41"}, "version": &types.AttributeValueMemberN{Value: "7"},
				"sum": &types.AttributeValueMemberB{Value: []byte("longer")},
			}})
			if err != nil {
				t.Fatal(err)
			}
			r := rig.Must(pessimistic.New(rig.Must(repo.NewTable[hashed](w.Client, w.Table, repo.TableConfig{}))(t), cfg))(t)
			var done sync.WaitGroup
			for i := range 10 {
				change := r.Update
				if i%2 == 0 {
					change = r.Upsert
				}
				done.Go(func() {
					_, err := change(t.Context(), hookedKey, func(_ context.Context, h *hashed) error { h.N++; return nil })
					rig.Is(t, err, repo.ErrSchema)
				})
			}
			done.Wait()
			raw := w.raw(t, hookedKey)
			if n := raw["n"].(*types.AttributeValueMemberN).Value; n != "41" || raw["lockedBy"] != nil {
				t.Errorf("stored %v", raw)
			}
		})
	}
}

// Of two goroutines that ended one hold, the second handed on nothing before
// the first handed on the lock, which was then held, and renewed, by nobody.
func TestAHoldThatIsEndedTwice(t *testing.T) {
	end := map[string]func(context.Context, *lockedread.Held[Account]){
		"release": func(ctx context.Context, h *lockedread.Held[Account]) { _ = h.Release(ctx) },
		"commit":  func(ctx context.Context, h *lockedread.Held[Account]) { _, _ = h.Commit(ctx, h.Item()) },
	}
	for name, second := range end {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			rig.Must(rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{}))(t).Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
			l := w.locker(t, w.Client, lockedread.Config{Lease: 5 * time.Second, Renew: true, ClockSkew: -1})
			for round := range rig.Share(60, 300) {
				held := rig.Must(l.Acquire(t.Context(), hookedKey))(t)
				var all sync.WaitGroup
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
					defer cancel()
					next, err := l.Acquire(ctx, hookedKey)
					if err != nil {
						t.Errorf("round %d: the lock is gone: %v", round, err)
						return
					}
					_ = next.Release(ctx)
				})
				inLine(t, 1)
				all.Go(func() { end["commit"](t.Context(), held) })
				all.Go(func() { second(t.Context(), held) })
				all.Wait()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// A request for a lock whose caller gave up in its middle arrived behind the one
// that takes it back: the lock stayed for a lease.
func TestAnAcquireThatIsGivenUp(t *testing.T) {
	for _, cfg := range []lockedread.Config{{}, {Fair: true}, {Combine: true}} {
		w := newWorld(t)
		table := w.repoTable(t, w.Client)
		rig.Must(rig.Must(optimistic.New(table, optimistic.Config{}))(t).Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
		client := rig.NewLate(w.Client, "UpdateItem", 1, func() { time.Sleep(50 * time.Millisecond) })
		l := w.locker(t, client, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		held, err := l.Acquire(ctx, hookedKey)
		cancel()
		if err == nil {
			err = held.Release(t.Context())
		}
		<-client.Arrived
		if lock := rig.Must(table.Inspect(t.Context(), hookedKey))(t); lock.Held {
			t.Errorf("%+v: %v; the lock is left behind: %+v", cfg, err, lock)
		}
	}
}

// A lone caller of a combining repository whose context ended was told that the
// item is locked: by itself.
func TestALoneCallerIsNotLockedOut(t *testing.T) {
	w := newWorld(t)
	rig.Must(rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{}))(t).Create(t.Context(), Account{ID: "p", Seq: 1, At: 1}))(t)
	l := w.locker(t, w.Client, lockedread.Config{Combine: true})
	for range 40 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(rand.N(3*time.Millisecond), cancel)
		_, err := l.Update(ctx, hookedKey, addOne)
		cancel()
		if errors.Is(err, repo.ErrLocked) {
			t.Errorf("nobody else wants the item: %v", err)
		}
		time.Sleep(30 * time.Millisecond) // what this one has left is cleared away
	}
}

// The stub of a new item that was passed on within a process stayed behind when
// nobody made the item.
func TestAStubThatIsHandedOnGoesToo(t *testing.T) {
	w := newWorld(t)
	first := w.locker(t, rig.Client(), lockedread.Config{Fair: true})
	other := w.locker(t, rig.Client(), lockedread.Config{Fair: true})
	held := rig.Must(first.AcquireOrCreate(t.Context(), hookedKey))(t)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { defer close(gone); _, _ = other.AcquireOrCreate(ctx, hookedKey) }()
	waits := func(name string) bool { return strings.HasPrefix(name, "w#") }
	rig.Await(t, "the other waits in the queue", func() bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(w.raw(t, hookedKey))), waits)
	})
	next := make(chan *lockedread.Held[Account])
	go func() { next <- rig.Must(first.AcquireOrCreate(t.Context(), hookedKey))(t) }()
	inLine(t, 1)
	if err := held.Extend(t.Context()); err != nil { // sees who waits in the queue
		t.Fatal(err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := <-next
	leave()
	<-gone
	if err := last.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if raw := w.raw(t, hookedKey); raw != nil {
		t.Errorf("left behind: %v", raw)
	}
}

// What others wrote before the call counted as a conflict of the call, where it
// began with what was kept.
func TestAStaleWarmItemIsNoConflict(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	warm := rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{Warm: 2, Attempts: 1}))(t)
	other := rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{}))(t)
	rig.Must(warm.Create(ctx, Account{ID: "p", Seq: 1, At: 1}))(t)
	for range 3 {
		rig.Must(warm.Update(ctx, hookedKey, addOne))(t)
	}
	rig.Must(other.Update(ctx, hookedKey, addOne))(t)
	if got := rig.Must(warm.Update(ctx, hookedKey, addOne))(t); got.Balance != 5 {
		t.Errorf("%+v, want 5 changes", got)
	}
}

func boxes(t *testing.T, w *world) map[string]repo.Repository[boxed] {
	table := rig.Must(repo.NewTable[boxed](w.Client, w.Table, repo.TableConfig{}))(t)
	return map[string]repo.Repository[boxed]{
		"pessimistic":            rig.Must(pessimistic.New(table, pessimistic.Config{}))(t),
		"pessimistic, combining": rig.Must(pessimistic.New(table, pessimistic.Config{Combine: true}))(t),
		"optimistic":             rig.Must(optimistic.New(table, optimistic.Config{}))(t),
		"optimistic, combining":  rig.Must(optimistic.New(table, optimistic.Config{Combine: true}))(t),
	}
}

func newBox(text string) boxed {
	return boxed{ID: "hot", Seq: 1, Box: box{&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: text}}}}}
}

// What a failed change did in place to a type that decodes itself was seen by
// the changes after it.
func TestAFailedChangeInPlaceIsSeenByNobody(t *testing.T) {
	for name := range boxes(t, newWorld(t)) {
		t.Run(name, func(t *testing.T) {
			r := boxes(t, newWorld(t))[name]
			ctx := t.Context()
			rig.Must(r.Create(ctx, newBox("true")))(t)
			mine := errors.New("refused")
			spoil := func(c *crowd) {
				_, err := r.Update(ctx, hotKey, func(_ context.Context, b *boxed) error { c.first(); b.spoil(); return mine })
				rig.Is(t, err, mine)
			}
			read := func(_ context.Context, b *boxed) error { b.Copied += b.text() + " "; return nil }
			c := crowdBehind(spoil)
			for i := range 6 {
				c.done.Go(func() {
					if i%2 == 0 {
						spoil(c)
						return
					}
					rig.Must(r.Update(ctx, hotKey, read))(t)
				})
			}
			c.standing(t, 6)
			c.done.Wait()
			if got := rig.Must(r.Get(ctx, hotKey))(t); got.text() != "true" || strings.Contains(got.Copied, "never") {
				t.Errorf("stored %q; changes saw %q", got.text(), got.Copied)
			}
		})
	}
}

// What a change did in place to such a type was told, and not written.
func TestAChangeInPlaceIsWritten(t *testing.T) {
	for name, r := range boxes(t, newWorld(t)) {
		t.Run(name, func(t *testing.T) {
			_ = r.Delete(t.Context(), hotKey)
			rig.Must(r.Create(t.Context(), newBox("true")))(t)
			told := rig.Must(r.Update(t.Context(), hotKey, func(_ context.Context, b *boxed) error { b.spoil(); return nil }))(t)
			if got := rig.Must(r.Get(t.Context(), hotKey))(t); got.text() != told.text() || got.Version != told.Version || told.Version != 2 {
				t.Errorf("told %q, version %d; stored %q, version %d", told.text(), told.Version, got.text(), got.Version)
			}
		})
	}
}
