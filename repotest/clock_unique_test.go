package repotest_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
)

type member struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Email   string `dynamodbav:"email" repo:"unique"`
	Expires int64  `dynamodbav:"expiresAt,omitempty"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// A unique value is its item's as long as that is there and has it: neither the end of a
// lease by the clock nor that of its time to live frees it, but a change and a removal do;
// what a dead holder then sends takes nothing back.
func TestUniqueValuesByTheClock(t *testing.T) {
	t.Parallel()
	var clock repotest.Clock
	r := rig.New(t)
	table := rig.Must(repo.NewTable[member](r.Client, r.Table, repo.TableConfig{Clock: clock.Now}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	open := func() *pessimistic.Repository[member] {
		return rig.Must(pessimistic.New(table, pessimistic.Config{Lease: lease}))(t)
	}
	members := open()
	create := func(id, email string) error {
		_, err := members.Create(soon(t), member{ID: id, Email: email})
		return err
	}
	rig.Is(t, create("a", "a@x"))
	dead := rig.Must(open().Acquire(t.Context(), repo.Key{Partition: "a"}))(t)
	rig.Is(t, create("b", "a@x"), repo.ErrNotUnique)
	clock.Advance(2 * lease)
	rig.Is(t, create("b", "a@x"), repo.ErrNotUnique)
	rig.Must(open().Update(soon(t), repo.Key{Partition: "a"}, func(_ context.Context, m *member) error {
		m.Email, m.Expires = "new@x", clock.Now().Add(lease).Unix()
		return nil
	}))(t)
	rig.Is(t, create("b", "a@x"))
	_, err := dead.Commit(t.Context(), dead.Item())
	rig.Is(t, err, repo.ErrLockLost)
	rig.Is(t, create("c", "a@x"), repo.ErrNotUnique)

	clock.Advance(2 * lease)
	rig.Is(t, create("c", "new@x"), repo.ErrNotUnique) // its time is over, and it is there
	_, err = rig.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &r.Table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a"}}})
	rig.Is(t, err) // as the service removes it
	rig.Is(t, create("c", "new@x"))
}
