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
func Strategies() []Strategy {
	return []Strategy{
		{"nolock", func(t testing.TB, f *Fixture, c repo.Client) repo.Repository[Account] {
			return rig.Must(nolock.New(f.Items(t, c), nolock.Config{Attempts: 1000}))(t)
		}, false},
		{"optimistic", func(t testing.TB, f *Fixture, c repo.Client) repo.Repository[Account] {
			return rig.Must(optimistic.New(f.Items(t, c), optimistic.Config{Attempts: 1000}))(t)
		}, false},
		{"pessimistic", func(t testing.TB, f *Fixture, c repo.Client) repo.Repository[Account] {
			return rig.Must(pessimistic.New(f.Items(t, c), pessimistic.Config{}))(t)
		}, false},
		{"pessimistic, clockless, renewing", func(t testing.TB, f *Fixture, c repo.Client) repo.Repository[Account] {
			return rig.Must(pessimistic.New(f.Items(t, c), pessimistic.Config{Clockless: true, Renew: true, LateCommit: true}))(t)
		}, false},
		{"pessimistic, combining", func(t testing.TB, f *Fixture, c repo.Client) repo.Repository[Account] {
			return rig.Must(pessimistic.New(f.Items(t, c), pessimistic.Config{Combine: true}))(t)
		}, true},
		{"pessimistic, fair", func(t testing.TB, f *Fixture, c repo.Client) repo.Repository[Account] {
			return rig.Must(pessimistic.New(f.Items(t, c), pessimistic.Config{Fair: true}))(t)
		}, false},
		{"pessimistic, combining, fair", func(t testing.TB, f *Fixture, c repo.Client) repo.Repository[Account] {
			return rig.Must(pessimistic.New(f.Items(t, c), pessimistic.Config{Combine: true, Fair: true}))(t)
		}, true},
		{"optimistic, warm, combining, fair", func(t testing.TB, f *Fixture, c repo.Client) repo.Repository[Account] {
			return rig.Must(optimistic.New(f.Items(t, c), optimistic.Config{Attempts: 1000, Warm: 100, Combine: true, Fair: true}))(t)
		}, true},
		{"optimistic, warm", func(t testing.TB, f *Fixture, c repo.Client) repo.Repository[Account] {
			return rig.Must(optimistic.New(f.Items(t, c), optimistic.Config{Attempts: 1000, Warm: 100}))(t)
		}, false},
		{"optimistic, warm, combining", func(t testing.TB, f *Fixture, c repo.Client) repo.Repository[Account] {
			return rig.Must(optimistic.New(f.Items(t, c), optimistic.Config{Attempts: 1000, Warm: 100, Combine: true}))(t)
		}, true},
	}
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
