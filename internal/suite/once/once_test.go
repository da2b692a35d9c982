package once_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.Main(m) }

type product struct {
	SKU     string `dynamodbav:"sku" repo:"pk"`
	Stock   int    `dynamodbav:"stock"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

var key = repo.Key{Partition: "apple"}

func take(_ context.Context, p *product) error { p.Stock--; return nil }

// view is what both strategies offer under an id.
type view interface {
	repo.Repository[product]
	Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) (product, error)
	Repeated() bool
}

// store is a table with an item of ten, and the views of one strategy.
type store struct {
	*rig.Rig
	table *repo.Table[product]
	once  func(id string) view
	plain repo.Repository[product]
}

// No machine is so slow that a lock ends with its lease in the middle of a test, but
// where locks are left behind and those who come wait for their end.
const (
	lease      = time.Minute
	shortLease = 2 * time.Second
)

// opener opens a strategy, whose locks have the lease: its views, and itself.
type opener func(*testing.T, *repo.Table[product], time.Duration) (func(string) view, repo.Repository[product])

var strategies = map[string]opener{
	"optimistic":             versions(optimistic.Config{}),
	"optimistic, warm":       versions(optimistic.Config{Warm: 8}),
	"optimistic, combining":  versions(optimistic.Config{Combine: true}),
	"optimistic, fair":       versions(optimistic.Config{Fair: true, Combine: true}),
	"pessimistic":            locks(pessimistic.Config{}),
	"pessimistic, combining": locks(pessimistic.Config{Combine: true}),
	"pessimistic, fair":      locks(pessimistic.Config{Fair: true}),
}

func versions(cfg optimistic.Config) opener {
	return func(t *testing.T, table *repo.Table[product], _ time.Duration) (func(string) view, repo.Repository[product]) {
		r := rig.Must(optimistic.New(table, cfg))(t)
		return func(id string) view { return r.Once(id) }, r
	}
}

func locks(cfg pessimistic.Config) opener {
	return func(t *testing.T, table *repo.Table[product], lease time.Duration) (func(string) view, repo.Repository[product]) {
		cfg := cfg
		cfg.Lease = lease
		r := rig.Must(pessimistic.New(table, cfg))(t)
		return func(id string) view { return r.Once(id) }, r
	}
}

// each runs a test with each strategy.
func each(t *testing.T, test func(t *testing.T, s *store)) {
	for name, open := range strategies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &store{Rig: rig.New(t)}
			s.table = rig.Must(repo.NewTable[product](s.Client, s.Table, repo.TableConfig{}))(t)
			rig.Is(t, s.table.EnsureTable(t.Context()))
			s.once, s.plain = open(t, s.table, lease)
			rig.Must(s.plain.Create(t.Context(), product{SKU: "apple", Stock: 10}))(t)
			s.Count.Reset()
			test(t, s)
		})
	}
}

func (s *store) stock(t *testing.T) int {
	t.Helper()
	return rig.Must(s.table.Get(t.Context(), key))(t).Stock
}

// raw is the item as it is stored.
func (s *store) raw(t *testing.T) map[string]types.AttributeValue {
	t.Helper()
	return s.Item(t, map[string]types.AttributeValue{"sku": &types.AttributeValueMemberS{Value: "apple"}})
}

// set writes attributes as a stranger does.
func (s *store) set(t *testing.T, update string, values map[string]types.AttributeValue) {
	t.Helper()
	rig.Must(s.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.Table, UpdateExpression: aws.String(update),
		Key: map[string]types.AttributeValue{"sku": &types.AttributeValueMemberS{Value: "apple"}}, ExpressionAttributeValues: values}))(t)
}

// taking are the calls that take one.
var taking = map[string]func(context.Context, view) (product, error){
	"Update": func(ctx context.Context, v view) (product, error) { return v.Update(ctx, key, take) },
	"Upsert": func(ctx context.Context, v view) (product, error) { return v.Upsert(ctx, key, take) },
	"Apply": func(ctx context.Context, v view) (product, error) {
		return v.Apply(ctx, key, expression.Add(expression.Name("stock"), expression.Value(-1)), expression.Name("stock").GreaterThan(expression.Value(0)))
	},
}

// id is what an item remembers of an id.
func id(text string) []byte { sum := sha256.Sum256([]byte(text)); return sum[:12] }

func set(ids ...[]byte) types.AttributeValue { return &types.AttributeValueMemberBS{Value: ids} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// now is the present epoch. A test that begins at the end of an hour fails at
// worst by one that it takes for another: it asks again.
func now() int64 { return time.Now().Unix() / 3600 }

// Each call of a message changes the item once, whatever call has brought it before.
// None costs a request more than the same call without an id.
func TestAMessageChangesAnItemOnce(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		want := 10
		for first, do := range taking {
			v := s.once("message " + first)
			s.Count.Reset()
			got := rig.Must(do(ctx, v))(t)
			if want--; got.Stock != want || v.Repeated() || s.stock(t) != want {
				t.Errorf("%s: %+v, repeated %v, want %d", first, got, v.Repeated(), want)
			}
			for again, do := range taking {
				before := s.raw(t)
				v := s.once("message " + first)
				got := rig.Must(do(ctx, v))(t)
				if got.Stock != want || !v.Repeated() || got.Version != int64(11-want) {
					t.Errorf("%s after %s: %+v, repeated %v", again, first, got, v.Repeated())
				}
				if after := s.raw(t); after["version"].(*types.AttributeValueMemberN).Value != before["version"].(*types.AttributeValueMemberN).Value {
					t.Errorf("%s after %s has written", again, first)
				}
			}
		}
	})
}

// A call with an id costs as many requests as one without, and its repetition no
// more.
func TestAnIDCostsNoRequest(t *testing.T) {
	for name, calls := range map[string]struct{ first, again map[string]int }{
		"optimistic":  {map[string]int{"Update": 2, "Upsert": 2, "Apply": 1}, map[string]int{"Update": 1, "Upsert": 1, "Apply": 1}},
		"pessimistic": {map[string]int{"Update": 2, "Upsert": 2, "Apply": 1}, map[string]int{"Update": 2, "Upsert": 2, "Apply": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &store{Rig: rig.New(t)}
			s.table = rig.Must(repo.NewTable[product](s.Client, s.Table, repo.TableConfig{}))(t)
			rig.Is(t, s.table.EnsureTable(t.Context()))
			s.once, s.plain = strategies[name](t, s.table, lease)
			cost := func(what string, want int, do func() error) {
				t.Helper()
				s.Count.Reset()
				rig.Is(t, do())
				rig.Equal(t, s.Count.Total(), want, "%s: requests", what)
			}
			for _, again := range []string{"", ", again"} {
				cost("Create"+again, 1, func() error {
					v := s.once("create")
					got, err := v.Create(t.Context(), product{SKU: "apple", Stock: 10})
					if got.Stock != 10 || got.Version != 1 || v.Repeated() != (again != "") {
						t.Errorf("Create%s: %+v, repeated %v", again, got, v.Repeated())
					}
					return err
				})
			}
			_, err := s.once("another").Create(t.Context(), product{SKU: "apple"})
			rig.Is(t, err, repo.ErrExists)
			for call, do := range taking {
				for again, want := range map[string]int{"": calls.first[call], "again": calls.again[call]} {
					if again != "" {
						rig.Must(do(t.Context(), s.once(call+again)))(t)
					}
					cost(call+" "+again, want, func() error { _, err := do(t.Context(), s.once(call+again)); return err })
				}
			}
		})
	}
}

// A change that alters nothing leaves its id all the same: what the message meant is
// done.
func TestAChangeThatAltersNothingLeavesItsID(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		rig.Must(s.once("m").Update(t.Context(), key, func(context.Context, *product) error { return nil }))(t)
		v := s.once("m")
		rig.Must(v.Update(t.Context(), key, take))(t)
		if s.stock(t) != 10 || !v.Repeated() {
			t.Errorf("stock %d, repeated %v", s.stock(t), v.Repeated())
		}
		// One that fails leaves none.
		refused := errors.New("refused")
		_, err := s.once("n").Update(t.Context(), key, func(context.Context, *product) error { return refused })
		rig.Is(t, err, refused)
		if rig.Must(s.once("n").Update(t.Context(), key, take))(t).Stock != 9 {
			t.Error("a change that failed has left its id")
		}
	})
}

// A deletion leaves nothing, so it cannot be told from one by others.
func TestADeletionUnderAnID(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		rig.Must(s.once("m").Update(t.Context(), key, take))(t)
		rig.Is(t, s.once("m").Delete(t.Context(), key)) // one operation: made already
		if s.stock(t) != 9 {
			t.Error("the second change under an id was made")
		}
		rig.Is(t, s.once("d").Delete(t.Context(), key))
		rig.Is(t, s.once("d").Delete(t.Context(), key), repo.ErrNotFound)
		_, err := s.once("m").Update(t.Context(), key, take)
		rig.Is(t, err, repo.ErrNotFound)
		rig.Must(s.once("u").Upsert(t.Context(), key, func(_ context.Context, p *product) error { p.Stock = 3; return nil }))(t)
		if got := rig.Must(s.once("u").Create(t.Context(), product{SKU: "apple"}))(t); got.Stock != 3 {
			t.Errorf("%+v", got)
		}
	})
}

func TestAnEmptyIDIsRefused(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		v := s.once("")
		for name, do := range taking {
			if _, err := do(t.Context(), v); !errors.Is(err, repo.ErrConfig) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := v.Get(t.Context(), key)
		rig.Is(t, err, repo.ErrConfig)
		_, err = v.Create(t.Context(), product{SKU: "pear"})
		rig.Is(t, err, repo.ErrConfig)
		rig.Is(t, v.Delete(t.Context(), key), repo.ErrConfig)
		if s.Count.Total() != 0 {
			t.Error("something was sent")
		}
	})
}

// Whatever answer is lost, the same call with the same id ends known, and the item
// is changed once.
func TestALostAnswerIsAskedForWithTheSameID(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		want := 10
		for name, do := range taking {
			for nth := range 3 {
				for _, kind := range []fault.Kind{fault.LoseResponse, fault.DropRequest, fault.Resend, fault.Error500After} {
					what := fmt.Sprint(name, nth, kind)
					ctx, leave := context.WithTimeout(t.Context(), 20*time.Second)
					s.Nth("UpdateItem", nth, kind)
					_, err := do(ctx, s.once(what))
					s.Faults(nil)
					if err != nil {
						_, err = do(ctx, s.once(what))
					}
					leave()
					rig.Is(t, err)
					if want--; s.stock(t) != want {
						t.Fatalf("%s: stock %d, want %d", what, s.stock(t), want)
					}
					if want == 1 {
						s.set(t, "SET stock = :n", map[string]types.AttributeValue{":n": number(10)})
						want = 10
						rig.Must(s.plain.Update(t.Context(), key, func(_ context.Context, p *product) error { p.Stock = 10; return nil }))(t)
					}
				}
			}
		}
	})
}
