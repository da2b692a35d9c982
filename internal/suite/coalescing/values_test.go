package coalescing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// What was wrong once with changes that share a write.

// box keeps the very values that it is decoded from.
type box struct{ AV types.AttributeValue }

func (b *box) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error { b.AV = av; return nil }

func (b box) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) { return b.AV, nil }

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

func boxes(t *testing.T, w *fixture.Fixture) map[string]repo.Repository[boxed] {
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

func TestWhatIsKeptIsNotSharedWithUsers(t *testing.T) {
	w := fixture.New(t)
	ctx := t.Context()
	table := rig.Must(repo.NewTable[boxed](w.Client, w.Table, repo.TableConfig{}))(t)
	r := rig.Must(optimistic.New(table, optimistic.Config{Warm: 10}))(t)
	rig.Must(r.Create(ctx, boxed{ID: "hot", Seq: 1, Box: box{&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "true"}}}}}))(t)
	for i := range 3 { // warm from here
		rig.Must(r.Update(ctx, fixture.HotKey, func(_ context.Context, b *boxed) error { b.Copied = fmt.Sprint(i); return nil }))(t)
	}
	mine := errors.New("refused")
	_, err := r.Update(ctx, fixture.HotKey, func(_ context.Context, b *boxed) error { b.spoil(); return mine })
	rig.Is(t, err, mine)
	look := func(_ context.Context, b *boxed) error { b.Copied += b.text(); return nil }
	for range 3 {
		got := rig.Must(r.Update(ctx, fixture.HotKey, look))(t)
		rig.Equal(t, got.text(), "true", "the item shows")
		got.spoil() // what a caller does to what it was given
	}
	if got := rig.Must(r.Get(ctx, fixture.HotKey))(t); got.text() != "true" || got.Copied != "2truetruetrue" {
		t.Errorf("stored %q, seen by changes: %q", got.text(), got.Copied)
	}
}

// What a failed change did in place to a type that decodes itself was seen by
// the changes after it.
func TestAFailedChangeInPlaceIsSeenByNobody(t *testing.T) {
	for name := range boxes(t, fixture.New(t)) {
		t.Run(name, func(t *testing.T) {
			r := boxes(t, fixture.New(t))[name]
			ctx := t.Context()
			rig.Must(r.Create(ctx, newBox("true")))(t)
			mine := errors.New("refused")
			spoil := func(c *fixture.Callers) {
				_, err := r.Update(ctx, fixture.HotKey, func(_ context.Context, b *boxed) error { c.First(); b.spoil(); return mine })
				rig.Is(t, err, mine)
			}
			read := func(_ context.Context, b *boxed) error { b.Copied += b.text() + " "; return nil }
			c := fixture.CallersBehind(spoil)
			for i := range 6 {
				c.Done.Go(func() {
					if i%2 == 0 {
						spoil(c)
						return
					}
					rig.Must(r.Update(ctx, fixture.HotKey, read))(t)
				})
			}
			c.Gathered(t, 6)
			c.Done.Wait()
			if got := rig.Must(r.Get(ctx, fixture.HotKey))(t); got.text() != "true" || strings.Contains(got.Copied, "never") {
				t.Errorf("stored %q; changes saw %q", got.text(), got.Copied)
			}
		})
	}
}

// What a change did in place to such a type was told, and not written.
func TestAChangeInPlaceIsWritten(t *testing.T) {
	for name, r := range boxes(t, fixture.New(t)) {
		t.Run(name, func(t *testing.T) {
			_ = r.Delete(t.Context(), fixture.HotKey)
			rig.Must(r.Create(t.Context(), newBox("true")))(t)
			told := rig.Must(r.Update(t.Context(), fixture.HotKey, func(_ context.Context, b *boxed) error { b.spoil(); return nil }))(t)
			if got := rig.Must(r.Get(t.Context(), fixture.HotKey))(t); got.text() != told.text() || got.Version != told.Version || told.Version != 2 {
				t.Errorf("told %q, version %d; stored %q, version %d", told.text(), told.Version, got.text(), got.Version)
			}
		})
	}
}

// bits encodes itself to the very bytes that it keeps, and keeps what it is decoded from.
type bits struct{ b []byte }

func (b bits) MarshalBinary() ([]byte, error)       { return b.b, nil }
func (b *bits) UnmarshalBinary(stored []byte) error { b.b = stored; return nil }

type bitmap struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Seq     int    `dynamodbav:"seq" repo:"sk"`
	Bits    bits   `dynamodbav:"bits"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// The same of a type that encodes itself to bytes by package encoding.
func TestAChangeInPlaceOfBytesIsWritten(t *testing.T) {
	w := fixture.New(t)
	table := rig.Must(repo.NewTable[bitmap](w.Client, w.Table, repo.TableConfig{
		EncoderOptions: func(o *attributevalue.EncoderOptions) { o.UseEncodingMarshalers = true },
		DecoderOptions: func(o *attributevalue.DecoderOptions) { o.UseEncodingUnmarshalers = true },
	}))(t)
	r := rig.Must(optimistic.New(table, optimistic.Config{Warm: 10}))(t)
	rig.Must(r.Create(t.Context(), bitmap{ID: "hot", Seq: 1, Bits: bits{[]byte("good")}}))(t)
	set := func(_ context.Context, b *bitmap) error { b.Bits.b[0] = 'f'; return nil }
	told := rig.Must(r.Update(t.Context(), fixture.HotKey, set))(t)
	if got := rig.Must(r.Get(t.Context(), fixture.HotKey))(t); string(got.Bits.b) != "food" || got.Version != 2 || told.Version != 2 {
		t.Errorf("told %q, version %d; stored %q, version %d", told.Bits.b, told.Version, got.Bits.b, got.Version)
	}
}
