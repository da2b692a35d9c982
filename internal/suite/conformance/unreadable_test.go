package conformance_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
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

// The SDK's decoder panics on bytes that are longer than their array.
func TestItemThatPanicsTheDecoder(t *testing.T) {
	type hashed struct {
		ID  string  `dynamodbav:"id" repo:"pk"`
		Seq int     `dynamodbav:"seq" repo:"sk"`
		Sum [2]byte `dynamodbav:"sum"`
	}
	w := fixture.New(t)
	_, err := w.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.Table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "p"}, "seq": &types.AttributeValueMemberN{Value: "1"}, "sum": &types.AttributeValueMemberB{Value: []byte("longer")}}})
	if err != nil {
		t.Fatal(err)
	}
	table := rig.Must(repo.NewTable[hashed](w.Client, w.Table, repo.TableConfig{}))(t)
	locks := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	for range 2 { // and the lock is given back
		_, err = locks.Update(t.Context(), fixture.Key, func(context.Context, *hashed) error { return nil })
		rig.Is(t, err, repo.ErrSchema)
	}
}

// The lock of an item that does not fit the type was passed on without the
// item: the next Upsert wrote a new one over it.
func TestAnItemThatDoesNotFitIsNotOverwritten(t *testing.T) {
	for name, cfg := range map[string]pessimistic.Config{"plain": {}, "combining": {Combine: true}, "fair": {Fair: true}} {
		t.Run(name, func(t *testing.T) {
			w := fixture.New(t)
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
					_, err := change(t.Context(), fixture.Key, func(_ context.Context, h *hashed) error { h.N++; return nil })
					rig.Is(t, err, repo.ErrSchema)
				})
			}
			done.Wait()
			raw := w.Raw(t, fixture.Key)
			if n := raw["n"].(*types.AttributeValueMemberN).Value; n != "41" || raw["lockedBy"] != nil {
				t.Errorf("stored %v", raw)
			}
		})
	}
}

// An item that does not fit its type, and a service that goes away: the call
// outlived its context by a lease.
func TestACallEndsWithItsContextAlsoWhereNothingAnswers(t *testing.T) {
	t.Parallel()
	w := fixture.New(t)
	if _, err := w.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.Table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "p"}, "seq": &types.AttributeValueMemberN{Value: "1"},
		"sum": &types.AttributeValueMemberB{Value: []byte("longer")},
	}}); err != nil {
		t.Fatal(err)
	}
	h := &rig.Intercept{Client: w.Client}
	h.Update = func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		if n > 1 {
			return nil, rig.ErrNoAnswer
		}
		return send()
	}
	const lease = 5 * time.Minute
	r := rig.Must(pessimistic.New(rig.Must(repo.NewTable[hashed](h, w.Table, repo.TableConfig{}))(t), pessimistic.Config{Lease: lease}))(t)
	ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer leave()
	began := time.Now()
	_, err := r.Update(ctx, fixture.Key, func(context.Context, *hashed) error { return nil })
	rig.Is(t, err, repo.ErrSchema)
	if took := time.Since(began); took > lease/4 {
		t.Errorf("the call ended after %v, its context after 200 ms", took)
	}
}

// The decoder matches names without case; attributes that T does not map must
// not reach it.
func TestForeignAttributesThatDifferInCase(t *testing.T) {
	w := fixture.New(t)
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	_, err := w.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.Table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "p"}, "seq": n("1"), "balance": n("1"), "Balance": n("99"), "BALANCE": n("98"), "at": n("1")}})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got := rig.Must(w.Items(t, w.Client).Get(t.Context(), fixture.Key))(t); got.Balance != 1 {
			t.Fatalf("balance read as %d", got.Balance)
		}
	}
}

// fragile ends the goroutine in which it is coded, as a test does by FailNow.
type fragile struct{ S string }

func (f fragile) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	if f.S == "unwritten" {
		runtime.Goexit()
	}
	return &types.AttributeValueMemberS{Value: f.S}, nil
}

func (f *fragile) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	if f.S = av.(*types.AttributeValueMemberS).Value; f.S == "unread" {
		runtime.Goexit()
	}
	return nil
}

type breakable struct {
	ID      string  `dynamodbav:"id" repo:"pk"`
	Seq     int     `dynamodbav:"seq" repo:"sk"`
	Field   fragile `dynamodbav:"field"`
	At      int64   `dynamodbav:"at" repo:"eventtime"`
	Version int64   `dynamodbav:"version" repo:"version"`
}

// A type that ended the goroutine in which it was coded kept the lock of its item, or left
// all who had joined its write, and all who came behind them, without an answer.
func TestATypeThatEndsItsGoroutine(t *testing.T) {
	for _, s := range fixture.StrategiesOf[breakable]() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			w := fixture.New(t)
			r := s.Open(t, rig.Must(repo.NewTable[breakable](w.Client, w.Table, repo.TableConfig{}))(t))
			rig.Must(r.Create(t.Context(), breakable{ID: "p", Seq: 1, Field: fragile{"good"}, At: 1}))(t)
			set := func(to string) (err error) {
				ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
				defer cancel()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					err = repo.ErrOutcomeUnknown
					_, err = r.Update(ctx, fixture.Key, func(_ context.Context, b *breakable) error { b.At, b.Field.S = b.At+1, to; return nil })
				}()
				<-ended
				return err
			}
			rig.Is(t, set("unwritten"), repo.ErrSchema)
			rig.Is(t, set("better"))
			if raw := w.Raw(t, fixture.Key); raw["lockedBy"] != nil {
				t.Errorf("stored %v", raw)
			}
			rig.Is(t, set("unread"))
			for range 2 {
				err := set("good")
				if rig.Is(t, err, repo.ErrSchema); !strings.HasSuffix(err.Error(), "it has ended its goroutine") {
					t.Errorf("it does not say what its type does: %v", err)
				}
			}
			if raw := w.Raw(t, fixture.Key); raw["lockedBy"] != nil {
				t.Errorf("stored %v", raw)
			}
		})
	}
}
