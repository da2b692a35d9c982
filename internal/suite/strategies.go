package suite

import (
	"slices"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// Strategy is a row of a suite's table.
type Strategy struct {
	Name string
	Open func(t testing.TB, f *Fixture, client repo.Client) repo.Repository[Account]
	// Combines: one write carries the changes of all callers that wait.
	Combines bool
}

// Strategies are all strategies, in every mode that changes how they write.
func Strategies() (all []Strategy) {
	for _, s := range StrategiesOf[Account]() {
		all = append(all, Strategy{s.Name, func(t testing.TB, f *Fixture, c repo.Client) repo.Repository[Account] {
			return s.Open(t, f.Items(t, c))
		}, s.combines})
	}
	return all
}

// StrategyOf is a strategy for items of any type.
type StrategyOf[T any] struct {
	Name     string
	Open     func(t testing.TB, table *repo.Table[T]) repo.Repository[T]
	combines bool
}

// StrategiesOf are the same strategies for items of a type that has all roles.
func StrategiesOf[T any]() []StrategyOf[T] {
	return []StrategyOf[T]{
		{"nolock", func(t testing.TB, table *repo.Table[T]) repo.Repository[T] {
			return rig.Must(nolock.New(table, nolock.Config{Attempts: 1000}))(t)
		}, false},
		byVersion[T]("optimistic", optimistic.Config{}),
		locking[T]("pessimistic", pessimistic.Config{}),
		locking[T]("pessimistic, clockless, renewing", pessimistic.Config{Clockless: true, Renew: true, LateCommit: true}),
		locking[T]("pessimistic, combining", pessimistic.Config{Combine: true}),
		locking[T]("pessimistic, fair", pessimistic.Config{Fair: true}),
		locking[T]("pessimistic, combining, fair", pessimistic.Config{Combine: true, Fair: true}),
		byVersion[T]("optimistic, warm, combining, fair", optimistic.Config{Warm: 100, Combine: true, Fair: true}),
		byVersion[T]("optimistic, warm", optimistic.Config{Warm: 100}),
		byVersion[T]("optimistic, warm, combining", optimistic.Config{Warm: 100, Combine: true}),
	}
}

func byVersion[T any](name string, cfg optimistic.Config) StrategyOf[T] {
	cfg.Attempts = 1000
	return StrategyOf[T]{name, func(t testing.TB, table *repo.Table[T]) repo.Repository[T] {
		return rig.Must(optimistic.New(table, cfg))(t)
	}, cfg.Combine}
}

func locking[T any](name string, cfg pessimistic.Config) StrategyOf[T] {
	return StrategyOf[T]{name, func(t testing.TB, table *repo.Table[T]) repo.Repository[T] {
		return rig.Must(pessimistic.New(table, cfg))(t)
	}, cfg.Combine}
}

// Combining are the modes that write the changes of several callers at once.
func Combining() []Strategy {
	return slices.DeleteFunc(Strategies(), func(s Strategy) bool { return !s.Combines })
}

// EachStrategy runs a test of every strategy, each on a table of its own.
func EachStrategy(t *testing.T, run func(t *testing.T, f *Fixture, s Strategy)) {
	t.Helper()
	each(t, Strategies(), run)
}

// EachCombining is EachStrategy for those that combine.
func EachCombining(t *testing.T, run func(t *testing.T, f *Fixture, s Strategy)) {
	t.Helper()
	each(t, Combining(), run)
}

func each(t *testing.T, strategies []Strategy, run func(t *testing.T, f *Fixture, s Strategy)) {
	t.Helper()
	for _, s := range strategies {
		t.Run(s.Name, func(t *testing.T) { run(t, New(t), s) })
	}
}
