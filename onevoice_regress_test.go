package dynahold_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// What was wrong once with changes that share a voice.

// box keeps the very values that it is decoded from.
type box struct{ AV types.AttributeValue }

func (b *box) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error { b.AV = av; return nil }
func (b box) MarshalDynamoDBAttributeValue() (types.AttributeValue, error)   { return b.AV, nil }

type boxed struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Seq     int    `dynamodbav:"seq" repo:"sk"`
	Box     box    `dynamodbav:"box"`
	Copied  string `dynamodbav:"copied"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

func (b *boxed) text() string {
	return b.Box.AV.(*types.AttributeValueMemberL).Value[0].(*types.AttributeValueMemberS).Value
}

func (b *boxed) spoil() {
	b.Box.AV.(*types.AttributeValueMemberL).Value[0] = &types.AttributeValueMemberS{Value: "never written"}
}

func TestWhatIsKeptIsNotSharedWithUsers(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	table := must(repo.NewTable[boxed](w.client, w.table, repo.TableConfig{}))(t)
	r := must(optimistic.New(table, optimistic.Config{Warm: 10}))(t)
	must(r.Create(ctx, boxed{ID: "hot", Seq: 1, Box: box{&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "true"}}}}}))(t)
	for i := range 3 { // warm from here
		must(r.Update(ctx, hotKey, func(_ context.Context, b *boxed) error { b.Copied = fmt.Sprint(i); return nil }))(t)
	}
	mine := errors.New("refused")
	_, err := r.Update(ctx, hotKey, func(_ context.Context, b *boxed) error { b.spoil(); return mine })
	wantIs(t, err, mine)
	look := func(_ context.Context, b *boxed) error { b.Copied += b.text(); return nil }
	for range 3 {
		got := must(r.Update(ctx, hotKey, look))(t)
		if got.text() != "true" {
			t.Errorf("the item shows %q", got.text())
		}
		got.spoil() // what a caller does to what it was given
	}
	if got := must(r.Get(ctx, hotKey))(t); got.text() != "true" || got.Copied != "2truetruetrue" {
		t.Errorf("stored %q, seen by changes: %q", got.text(), got.Copied)
	}
}

// Changes that cancel each other out were acknowledged with versions of their
// own: the version moves even where the item is as it was.
func TestChangesThatCancelOut(t *testing.T) {
	for _, s := range combining() {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			r := s.open(t, w, w.client)
			ctx := t.Context()
			must(r.Create(ctx, Account{ID: "hot", Seq: 1, At: 1}))(t)
			c := newCrowd()
			var done sync.WaitGroup
			done.Go(func() {
				must(r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { return c.first(a) }))(t)
			})
			<-c.inside
			var highest atomic.Int64
			for i := range 4 {
				by := int64(i%2*2 - 1)
				done.Go(func() {
					got := must(r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Balance += by; return nil }))(t)
					for old := highest.Load(); got.Version > old && !highest.CompareAndSwap(old, got.Version); old = highest.Load() {
					}
				})
			}
			c.standing(t, 4)
			done.Wait()
			if got := must(r.Get(ctx, hotKey))(t); got.Balance != 0 || got.Version != 5 || highest.Load() != 5 {
				t.Errorf("stored %+v, the highest version told is %d: want 5", got, highest.Load())
			}
		})
	}
}

// An upsert whose changes all fail made the item all the same.
func TestFailedUpsertsMakeNothing(t *testing.T) {
	for _, s := range combining() {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			r := s.open(t, w, w.client)
			ctx := t.Context()
			mine := errors.New("no")
			func() {
				defer func() { _ = recover() }()
				_, _ = r.Upsert(ctx, hotKey, func(context.Context, *Account) error { panic("boom") })
			}()
			c := newCrowd()
			var done sync.WaitGroup
			for i := range 3 {
				done.Go(func() {
					_, err := r.Upsert(ctx, hotKey, func(_ context.Context, a *Account) error {
						_ = c.first(a)
						if a.Balance = 1; i == 2 {
							runtime.Goexit()
						}
						return mine
					})
					wantIs(t, err, mine)
				})
			}
			<-c.inside
			c.standing(t, 2)
			done.Wait()
			if _, err := r.Get(ctx, hotKey); !errors.Is(err, repo.ErrNotFound) {
				t.Errorf("error %v, want ErrNotFound: nobody made the item", err)
			}
		})
	}
}

// A change that calls its own repository for the same item is told so instead
// of waiting for itself.
func TestNestedChangesUnderALock(t *testing.T) {
	w := newWorld(t)
	table := w.repoTable(t, w.client)
	must(must(optimistic.New(table, optimistic.Config{}))(t).Create(t.Context(), Account{ID: "hot", Seq: 1, At: 1}))(t)
	for name, r := range map[string]repo.Repository[Account]{
		"pessimistic":      must(pessimistic.New(table, pessimistic.Config{}))(t),
		"combining":        must(pessimistic.New(table, pessimistic.Config{Combine: true}))(t),
		"optimistic, fair": must(optimistic.New(table, optimistic.Config{Fair: true}))(t),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := r.Update(ctx, hotKey, func(ctx context.Context, a *Account) error {
				a.Balance++
				_, err := r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Balance += 10; return nil })
				return err
			})
			if !errors.Is(err, repo.ErrLocked) || ctx.Err() != nil {
				t.Errorf("error %v, want ErrLocked at once", err)
			}
		})
	}
}
