package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// visit is an item that all strategies can change.
type visit struct {
	ID      string         `dynamodbav:"id" repo:"pk"`
	Count   int            `dynamodbav:"count"`
	Seen    map[string]int `dynamodbav:"seen"`
	At      int64          `dynamodbav:"at" repo:"eventtime"`
	Version int64          `dynamodbav:"version" repo:"version"`
}

// call is an Apply of some strategy, with conditions where it takes them.
type call func(ctx context.Context, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) error

// calls are those of all strategies, alone and in a transaction, on one item.
func calls(t *testing.T, r *rig.Rig, cfg repo.TableConfig) map[string]call {
	table := rig.Must(repo.NewTable[visit](r.Client, r.Table, cfg))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	o := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	p := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	n := rig.Must(nolock.New(table, nolock.Config{}))(t)
	rig.Is(t, n.Put(t.Context(), visit{ID: "a", Count: 1, Seen: map[string]int{"x": 1}, At: 1}))
	key, at := repo.Key{Partition: "a"}, int64(1)
	return map[string]call{
		"optimistic": func(ctx context.Context, u expression.UpdateBuilder, c ...expression.ConditionBuilder) error {
			_, err := o.Apply(ctx, key, u, c...)
			return err
		},
		"optimistic, once": func(ctx context.Context, u expression.UpdateBuilder, c ...expression.ConditionBuilder) error {
			_, err := o.Once("an order").Apply(ctx, key, u, c...)
			return err
		},
		"optimistic, inside": func(ctx context.Context, u expression.UpdateBuilder, c ...expression.ConditionBuilder) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return o.In(tx).Apply(ctx, key, u, c...) })
		},
		"pessimistic": func(ctx context.Context, u expression.UpdateBuilder, c ...expression.ConditionBuilder) error {
			_, err := p.Apply(ctx, key, u, c...)
			return err
		},
		"pessimistic, once": func(ctx context.Context, u expression.UpdateBuilder, c ...expression.ConditionBuilder) error {
			_, err := p.Once("an order").Apply(ctx, key, u, c...)
			return err
		},
		"pessimistic, inside": func(ctx context.Context, u expression.UpdateBuilder, c ...expression.ConditionBuilder) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return p.In(tx).Apply(ctx, key, u, c...) })
		},
		"nolock": func(ctx context.Context, u expression.UpdateBuilder, _ ...expression.ConditionBuilder) error {
			at++
			return n.Apply(ctx, key, at, u)
		},
		"nolock, inside": func(ctx context.Context, u expression.UpdateBuilder, _ ...expression.ConditionBuilder) error {
			at++
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return n.In(tx).Apply(ctx, key, at, u) })
		},
	}
}

// plain is a new builder each time: what is added to one is in all that share its state.
func plain() expression.UpdateBuilder {
	return expression.Add(expression.Name("count"), expression.Value(1))
}

// A name that neither the type nor the library has, wherever it stands, is refused before
// anything is sent.
func TestNamesThatTheTypeDoesNotHave(t *testing.T) {
	misspelt := map[string]struct {
		update     expression.UpdateBuilder
		conditions []expression.ConditionBuilder
		nearest    string
	}{
		"cuont":   {expression.Add(expression.Name("cuont"), expression.Value(1)), nil, "count"},
		"Seen":    {expression.Set(expression.Name("Seen.count"), expression.Value(1)), nil, "seen"},
		"verson":  {expression.Set(expression.Name("count"), expression.Name("verson").Plus(expression.Value(1))), nil, "version"},
		"ount":    {plain().Set(expression.Name("seen"), expression.IfNotExists(expression.Name("ount[0]"), expression.Value(1))), nil, "count"},
		"count2":  {plain().Remove(expression.Name("count2")), nil, "count"},
		"counted": {plain(), []expression.ConditionBuilder{expression.Name("count").GreaterThan(expression.Value(0)), expression.Name("counted").AttributeNotExists()}, "count"},
	}
	r := rig.New(t)
	for strategy, apply := range calls(t, r, repo.TableConfig{}) {
		for name, c := range misspelt {
			if c.conditions != nil && strings.HasPrefix(strategy, "nolock") {
				continue // it takes none
			}
			r.Count.Reset()
			err := apply(t.Context(), c.update, c.conditions...)
			if !errors.Is(err, repo.ErrConfig) || !strings.Contains(err.Error(), `"`+name+`"`) || !strings.Contains(err.Error(), `"`+c.nearest+`"`) {
				t.Errorf("%s, %s: %v", strategy, name, err)
			}
			if sent := r.Count.Total(); sent != 0 || repo.VerdictOf(err) != repo.NotWritten {
				t.Errorf("%s, %s: %d requests, %v", strategy, name, sent, repo.VerdictOf(err))
			}
		}
	}
}

// So is a value that the encoder makes nothing of: the client would send what is no request.
func TestValuesThatAreNone(t *testing.T) {
	r := rig.New(t)
	for strategy, apply := range calls(t, r, repo.TableConfig{}) {
		for _, value := range []any{make(chan int), func() {}, 1i, (*types.AttributeValueMemberS)(nil)} {
			for place, update := range map[string]expression.UpdateBuilder{
				"set":    expression.Set(expression.Name("count"), expression.Value(value)),
				"absent": expression.Set(expression.Name("count"), expression.IfNotExists(expression.Name("count"), expression.Value(value))),
			} {
				r.Count.Reset()
				if err := apply(t.Context(), update); !errors.Is(err, repo.ErrConfig) || r.Count.Total() != 0 {
					t.Errorf("%s, %s, %T: %d requests, %v", strategy, place, value, r.Count.Total(), err)
				}
			}
		}
	}
}

// Paths within an attribute, and attributes of the library in conditions, are free.
func TestNamesThatGoOn(t *testing.T) {
	r := rig.New(t)
	inner := expression.Add(expression.Name("count"), expression.Value(1)).Set(expression.Name("seen.anything"), expression.Name("seen.x").Plus(expression.Value(1)))
	for strategy, apply := range calls(t, r, repo.TableConfig{}) {
		if err := apply(t.Context(), inner, expression.Name("tombstone").AttributeNotExists(), expression.Name("id").AttributeExists(), expression.Name("expiresAt").AttributeNotExists()); err != nil {
			t.Errorf("%s: %v", strategy, err)
		}
	}
}

// AnyAttribute is for those who mean an attribute that the type does not have.
func TestAnyAttribute(t *testing.T) {
	r := rig.New(t)
	for strategy, apply := range calls(t, r, repo.TableConfig{AnyAttribute: true}) {
		if err := apply(t.Context(), plain().Set(expression.Name("other"), expression.Value(1)), expression.Name("third").AttributeNotExists()); err != nil {
			t.Errorf("%s: %v", strategy, err)
		}
	}
}
