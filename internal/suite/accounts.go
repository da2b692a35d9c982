// Package suite is what the suites in the folders beside this file run over: an
// item that every strategy can keep, the strategies, the kinds of lock, and
// callers of one process that are made to wait for each other. A suite states a
// promise once and checks it for everything that makes it.
package suite

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
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

// Keys of the one account of a test: an ordinary one, and one that many want.
var (
	Key    = repo.Key{Partition: "p", Sort: 1}
	HotKey = repo.Key{Partition: "hot", Sort: 1}
)

// AddOne is the smallest change.
func AddOne(_ context.Context, a *Account) error { a.Balance++; return nil }

// Fixture is a test's table of accounts.
type Fixture struct{ *rig.Rig }

// New makes the table.
func New(t testing.TB) *Fixture {
	t.Helper()
	f := Empty(t)
	rig.Is(t, f.Items(t, f.Client).EnsureTable(t.Context()))
	f.Count.Reset()
	return f
}

// Empty is a fixture whose table is not made yet.
func Empty(t testing.TB) *Fixture {
	t.Helper()
	return &Fixture{rig.New(t)}
}

// NewWith makes the table and one account in it, and a client for the test to
// act at its requests.
func NewWith(t testing.TB, key repo.Key) (*Fixture, *rig.Intercept) {
	t.Helper()
	f := New(t)
	id, _ := key.Partition.(string)
	rig.Must(rig.Must(optimistic.New(f.Items(t, f.Client), optimistic.Config{}))(t).Create(t.Context(), Account{ID: id, Seq: 1, At: 1}))(t)
	return f, &rig.Intercept{Client: f.Client}
}

// Items is the table through a client.
func (f *Fixture) Items(t testing.TB, client repo.Client) *repo.Table[Account] {
	t.Helper()
	return rig.Must(repo.NewTable[Account](client, f.Table, repo.TableConfig{}))(t)
}

// Raw reads an item as DynamoDB has it.
func (f *Fixture) Raw(t testing.TB, key repo.Key) map[string]types.AttributeValue {
	t.Helper()
	return f.Item(t, rig.Must(f.Items(t, f.Client).EncodeKey(key))(t))
}

// Locker is a locker of accounts through a client.
func (f *Fixture) Locker(t testing.TB, client repo.Client, cfg lockedread.Config) *lockedread.Locker[Account] {
	t.Helper()
	return rig.Must(lockedread.New(f.Items(t, client), cfg))(t)
}
