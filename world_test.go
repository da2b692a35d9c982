package dynahold_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// Account is an item that all strategies can keep.
type Account struct {
	ID      string   `dynamodbav:"id" repo:"pk"`
	Seq     int      `dynamodbav:"seq" repo:"sk"`
	Balance int64    `dynamodbav:"balance"`
	Ops     []string `dynamodbav:"ops,omitempty"`
	Tags    []string `dynamodbav:"tags,omitempty"`
	Note    string   `dynamodbav:"note,omitempty"`
	At      int64    `dynamodbav:"at" repo:"eventtime"`
	Version int64    `dynamodbav:"version" repo:"version"`
}

// world is a table of its own on the engine.
type world struct{ *rig.Rig }

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{rig.New(t)}
	rig.Is(t, w.repoTable(t, w.Client).EnsureTable(t.Context()))
	w.Count.Reset()
	return w
}

func (w *world) repoTable(t testing.TB, client repo.Client) *repo.Table[Account] {
	t.Helper()
	return rig.Must(repo.NewTable[Account](client, w.Table, repo.TableConfig{}))(t)
}

// raw reads an item as DynamoDB has it.
func (w *world) raw(t testing.TB, key repo.Key) map[string]types.AttributeValue {
	t.Helper()
	return w.Item(t, rig.Must(w.repoTable(t, w.Client).EncodeKey(key))(t))
}

// strategy is a row of the suite's table.
type strategy struct {
	name string
	open func(t testing.TB, w *world, client repo.Client) repo.Repository[Account]
	// combines: one write carries the changes of all callers that wait.
	combines bool
}

func strategies() []strategy {
	return []strategy{
		{"nolock", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return rig.Must(nolock.New(w.repoTable(t, c), nolock.Config{Attempts: 1000}))(t)
		}, false},
		{"optimistic", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return rig.Must(optimistic.New(w.repoTable(t, c), optimistic.Config{Attempts: 1000}))(t)
		}, false},
		{"pessimistic", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return rig.Must(pessimistic.New(w.repoTable(t, c), pessimistic.Config{}))(t)
		}, false},
		{"pessimistic, clockless, renewing", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return rig.Must(pessimistic.New(w.repoTable(t, c), pessimistic.Config{Clockless: true, Renew: true, LateCommit: true}))(t)
		}, false},
		{"pessimistic, combining", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return rig.Must(pessimistic.New(w.repoTable(t, c), pessimistic.Config{Combine: true}))(t)
		}, true},
		{"pessimistic, fair", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return rig.Must(pessimistic.New(w.repoTable(t, c), pessimistic.Config{Fair: true}))(t)
		}, false},
		{"pessimistic, combining, fair", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return rig.Must(pessimistic.New(w.repoTable(t, c), pessimistic.Config{Combine: true, Fair: true}))(t)
		}, true},
		{"optimistic, warm, combining, fair", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return rig.Must(optimistic.New(w.repoTable(t, c), optimistic.Config{Attempts: 1000, Warm: 100, Combine: true, Fair: true}))(t)
		}, true},
		{"optimistic, warm", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return rig.Must(optimistic.New(w.repoTable(t, c), optimistic.Config{Attempts: 1000, Warm: 100}))(t)
		}, false},
		{"optimistic, warm, combining", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return rig.Must(optimistic.New(w.repoTable(t, c), optimistic.Config{Attempts: 1000, Warm: 100, Combine: true}))(t)
		}, true},
	}
}

func eachStrategy(t *testing.T, f func(t *testing.T, w *world, s strategy)) {
	for _, s := range strategies() {
		t.Run(s.name, func(t *testing.T) { f(t, newWorld(t), s) })
	}
}

func (w *world) locker(t testing.TB, client repo.Client, cfg lockedread.Config) *lockedread.Locker[Account] {
	t.Helper()
	return rig.Must(lockedread.New(w.repoTable(t, client), cfg))(t)
}
