package batch_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/batch"
	"github.com/dynahold/dynahold/repo"
)

type item struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Count   int    `dynamodbav:"count"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

func newTable(t *testing.T) *repo.Table[item] {
	t.Helper()
	table, err := repo.NewTable[item](dynamodb.New(dynamodb.Options{}), "never-asked", repo.TableConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func add(_ context.Context, i *item) error { i.Count++; return nil }

// verdict is what Await returned.
type verdict struct {
	item item
	err  error
}

func await(p *batch.Part[item]) <-chan verdict {
	told := make(chan verdict, 1)
	go func() {
		got, err := p.Await()
		told <- verdict{got, err}
	}()
	return told
}

// A caller that is drawn while the only one before it panics is not drawn into
// that one's end: it takes part, or is not drawn.
func TestDrawnWhileTheOnlyCallerPanics(t *testing.T) {
	table := newTable(t)
	for range 500 {
		first := batch.NewPart(t.Context(), false, func(context.Context, *item) error { panic("boom") }, nil)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			defer func() { _ = recover() }()
			_, _ = first.Await()
		}()
		second := batch.NewPart(t.Context(), false, add, nil)
		told := await(second)
		drawn := false
		b := batch.New(table, first, func() *batch.Part[item] {
			if drawn {
				return nil
			}
			<-gone
			drawn = true
			return second
		})
		work := item{ID: "a", Count: 5, Version: 1}
		err := b.Change(b.Context(), &work)
		if !drawn {
			if !errors.Is(err, context.Canceled) || work.Count != 5 {
				t.Fatalf("a batch of nobody: error %v, item %+v", err, work)
			}
			continue
		}
		if err != nil || work.Count != 6 || b.Count() != 1 || b.Context().Err() != nil {
			t.Fatalf("error %v, item %+v, %d changes, context %v", err, work, b.Count(), b.Context().Err())
		}
		if again := b.Conclude(nil); len(again) != 0 {
			t.Fatalf("%d want to run again", len(again))
		}
		if got := <-told; got.err != nil || got.item != (item{ID: "a", Count: 6, Version: 2}) {
			t.Fatalf("told %+v", got)
		}
	}
}

// A batch that all have left ends, and takes nobody along.
func TestABatchThatAllHaveLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	first := batch.NewPart(ctx, false, add, nil)
	b := batch.New(newTable(t), first, func() *batch.Part[item] {
		t.Error("somebody was drawn into a batch that has ended")
		return nil
	})
	cancel()
	told := await(first)
	<-b.Context().Done()
	work := item{ID: "a", Count: 5, Version: 1}
	if err := b.Change(b.Context(), &work); !errors.Is(err, context.Canceled) || work.Count != 5 {
		t.Errorf("error %v, item %+v, want neither change nor write", err, work)
	}
	b.Conclude(context.Canceled)
	if got := <-told; !errors.Is(got.err, context.Canceled) {
		t.Errorf("told %+v", got)
	}
}
