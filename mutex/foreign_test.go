package mutex_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

type row = map[string]types.AttributeValue

func tokenOf(t testing.TB, r row) int64 {
	t.Helper()
	n, ok := r["lockHeld"].(*types.AttributeValueMemberN)
	if !ok {
		t.Fatalf("no token in %v", r)
	}
	return rig.Must(strconv.ParseInt(n.Value, 10, 64))(t)
}

// What cannot be read was left locked by the very request that found out.
func TestALockWhoseTokenCannotBeReadIsGivenBack(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		for name, strange := range map[string]row{
			"half a token": {"lockToken": &types.AttributeValueMemberN{Value: "1.5"}},
			"a huge token": {"lockToken": &types.AttributeValueMemberN{Value: "1e30"}},
			"no number":    {"lockStolen": &types.AttributeValueMemberS{Value: "no"}},
		} {
			strange["name"] = &types.AttributeValueMemberS{Value: name}
			rig.Must(b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: strange}))(t)
			for range 2 { // the second would find the first in its way
				_, err := b.locker(t, cfg).TryLock(t.Context(), name)
				rig.Is(t, err, repo.ErrSchema)
				if by := b.row(t, name)["lockedBy"]; by != nil {
					t.Errorf("%s: still locked", name)
				}
			}
		}
	})
}

// One row that is no lock of ours hid all others.
func TestListShowsWhatItCanRead(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{})
	for i := range 12 {
		name := fmt.Sprint("a stranger ", i) // before the locks, in whatever order they are scanned
		rig.Must(b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: row{
			"name": &types.AttributeValueMemberS{Value: name}, "lockedBy": &types.AttributeValueMemberN{Value: "5"}}}))(t)
	}
	for i := range 20 {
		lock(t, l, fmt.Sprint("lock ", i))
	}
	seen := map[any]bool{}
	var last error
	for info, err := range l.List(t.Context()) {
		if last != nil {
			t.Errorf("%v, %v after the error %v", info, err, last)
		}
		if last = err; err == nil {
			seen[info.Key.Partition] = true
		}
	}
	rig.Equal(t, len(seen), 20, "locks of 20")
	rig.Is(t, last, repo.ErrSchema)
	for _, err := range l.List(t.Context()) {
		_ = err // seen above
		break   // what is left is not even counted
	}
}
