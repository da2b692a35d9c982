package combine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/dynahold/dynahold/internal/combine"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

type item struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Count   int    `dynamodbav:"count"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// groupOf is a group of these, which draws them one after the other.
func groupOf(table *typed.Table, parts ...*combine.Participant) *combine.Group {
	others := parts[1:]
	return combine.NewGroup(table, telemetry.Pessimistic, parts[0], func() (p *combine.Participant) {
		if len(others) > 0 {
			p, others = others[0], others[1:]
		}
		return p
	})
}

func newTable(t *testing.T) *typed.Table { return tableOf[item](t) }

func tableOf[T any](t *testing.T) *typed.Table {
	t.Helper()
	return typed.TableOf(rig.Must(repo.NewTable[T](dynamodb.New(dynamodb.Options{}), "never-asked", repo.TableConfig{}))(t))
}

// edit runs a batch on an item, and leaves what its write would make of it.
func edit[T any](t *testing.T, table *typed.Table, b *combine.Group, work *T) error {
	t.Helper()
	raw := rig.Must(table.Encode(work))(t)
	e, err := b.Edit(b.Context(), rig.Must(typed.SnapshotOf(table, raw))(t))
	if err == nil {
		*work = *rig.Must(table.Decode(typed.ApplyTo(table.Core, raw, e.Diff, nil, 1)))(t).(*T)
	}
	return err
}

// participant is a caller with a change of its own type.
func participant[T any](ctx context.Context, create bool, change func(context.Context, *T) error, ended func() error) *combine.Participant {
	return combine.NewParticipant(ctx, create, typed.ChangeOf(change), ended)
}

func add(_ context.Context, i *item) error { i.Count++; return nil }

// verdict is what Await returned.
type verdict struct {
	item item
	err  error
}

func await(p *combine.Participant) <-chan verdict {
	told := make(chan verdict, 1)
	go func() {
		got, err := typed.As[item](p.Await())
		told <- verdict{got, err}
	}()
	return told
}

// A caller that is drawn while the only one before it panics is not drawn into
// that one's end: it takes part, or is not drawn.
func TestDrawnWhileTheOnlyCallerPanics(t *testing.T) {
	table := newTable(t)
	for range 500 {
		first := participant(t.Context(), false, func(context.Context, *item) error { panic("boom") }, nil)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			defer func() { _ = recover() }()
			_, _ = first.Await()
		}()
		second := participant(t.Context(), false, add, nil)
		told := await(second)
		drawn := false
		b := combine.NewGroup(table, telemetry.Pessimistic, first, func() *combine.Participant {
			if drawn {
				return nil
			}
			<-gone
			drawn = true
			return second
		})
		work := item{ID: "a", Count: 5, Version: 1}
		err := edit(t, table, b, &work)
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
	table := newTable(t)
	first := participant(ctx, false, add, nil)
	b := combine.NewGroup(table, telemetry.Pessimistic, first, func() *combine.Participant {
		t.Error("somebody was drawn into a batch that has ended")
		return nil
	})
	cancel()
	told := await(first)
	<-b.Context().Done()
	work := item{ID: "a", Count: 5, Version: 1}
	if err := edit(t, table, b, &work); !errors.Is(err, context.Canceled) || work.Count != 5 {
		t.Errorf("error %v, item %+v, want neither change nor write", err, work)
	}
	b.Conclude(context.Canceled)
	if got := <-told; !errors.Is(got.err, context.Canceled) {
		t.Errorf("told %+v", got)
	}
}

// Where a write fails for what it writes, only who is at fault shall fail: its
// callers run again, alone. Where it fails for another reason, all fail at once.
func TestWhoseErrorItIs(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		again bool
	}{
		{"too large", fmt.Errorf("%w: 500 KB", repo.ErrTooLarge), true},
		{"invalid", fmt.Errorf("%w: %w", repo.ErrSchema, &smithy.GenericAPIError{Code: "ValidationException"}), true},
		{"collection too large", &smithy.GenericAPIError{Code: "ItemCollectionSizeLimitExceededException"}, true},
		{"denied", fmt.Errorf("%w: %w", repo.ErrDenied, &smithy.GenericAPIError{Code: "AccessDeniedException"}), true},
		{"throttled", &smithy.GenericAPIError{Code: "ProvisionedThroughputExceededException"}, false},
		{"unreachable", fmt.Errorf("UpdateItem: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")}), false},
		{"conflict", &repo.ConflictError{Attempts: 64}, false},
		{"unknown", repo.ErrOutcomeUnknown, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := []*combine.Participant{participant(t.Context(), false, add, nil), participant(t.Context(), false, add, nil)}
			told := []<-chan verdict{await(parts[0]), await(parts[1])}
			table := newTable(t)
			b := groupOf(table, parts...)
			work := item{ID: "a", Version: 1}
			if err := edit(t, table, b, &work); err != nil || work.Count != 2 {
				t.Fatalf("error %v, item %+v", err, work)
			}
			again := b.Conclude(c.err)
			if c.again != (len(again) == 2) || !c.again && len(again) > 0 {
				t.Fatalf("%d run again", len(again))
			}
			for _, p := range again {
				alone := combine.NewGroup(table, telemetry.Pessimistic, p, nil)
				work := item{ID: "a", Version: 1}
				if err := edit(t, table, alone, &work); err != nil || work.Count != 1 {
					t.Errorf("alone: error %v, item %+v", err, work)
				}
				if more := alone.Conclude(c.err); len(more) != 0 {
					t.Errorf("%d would run for ever", len(more))
				}
			}
			for _, v := range told {
				if got := <-v; !errors.Is(got.err, c.err) {
					t.Errorf("told %+v", got)
				}
			}
		})
	}
}
