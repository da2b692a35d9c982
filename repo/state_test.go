package repo_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func word(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func TestState(t *testing.T) {
	table, err := repo.NewKeyTable(new(dynamodb.Client), "orders", repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}, repo.TableConfig{})
	if err != nil {
		t.Fatal(err)
	}
	end := time.Unix(1_800_000_000, 0).UTC()
	id := stored.NewID("till")
	since := stored.Record{By: id}.Asked()
	yes := &types.AttributeValueMemberBOOL{Value: true}
	for what, c := range map[string]struct {
		item map[string]types.AttributeValue
		want repo.State
	}{
		"no item":    {nil, repo.State{}},
		"plain item": {map[string]types.AttributeValue{"id": word("a"), "price": number(3)}, repo.State{}},
		"held, with two who wait": {map[string]types.AttributeValue{
			"lockedBy": word(id), "lockTime": number(end.Unix()), "lockLease": number(30), "lockHeld": number(7), "lockToken": number(10),
			"lockQueue": queue("bbbb", "", "aaaa"),
		}, repo.State{Lock: repo.Lock{Held: true, Owner: "till", Token: 7, Last: 9, Until: end, Lease: 30 * time.Second, Since: since}, Waiting: []string{"YmJiYg", "YWFhYQ"}}},
		"held, with its own entry": {map[string]types.AttributeValue{
			"lockedBy": word(id), "lockTime": number(end.Unix()), "lockLease": number(30), "lockHeld": number(7), "lockToken": number(10),
			"lockQueue": queue(stored.EntryOf(id), "bbbb"),
		}, repo.State{Lock: repo.Lock{Held: true, Owner: "till", Token: 7, Last: 9, Until: end, Lease: 30 * time.Second, Since: since}, Waiting: []string{"YmJiYg"}}},
		"held by hand": {map[string]types.AttributeValue{"lockedBy": word("alice"), "lockTime": number(end.Unix())},
			repo.State{ByHand: true, Lock: repo.Lock{Held: true, Owner: "alice", Until: end}}},
		"tombstone that remembers": {map[string]types.AttributeValue{
			"tombstone": yes, "expiresAt": number(end.Unix()), "writers": &types.AttributeValueMemberB{Value: make([]byte, 24)},
			"once": &types.AttributeValueMemberBS{Value: [][]byte{make([]byte, 12)}}, "onceEpoch": number(5),
		}, repo.State{Tombstone: true, Expires: end, Writes: 3, OnceIDs: 1}},
		"attributes of somebody else": {map[string]types.AttributeValue{
			"writers": word("Ann, Bob"), "tombstone": word("granite"), "lockQueue": word("x"), "lockToken": number(4),
		}, repo.State{Lock: repo.Lock{Last: 3}, Foreign: []repo.Foreign{
			{Name: "lockQueue", Role: "LockQueue", Why: "type S, not the places of those who wait in line, a list"},
			{Name: "tombstone", Role: "Tombstone", Why: "type S, not the mark of a deleted item (BOOL true)"},
			{Name: "writers", Role: "Writers", Why: "type S, not the ids of the latest writes (bytes, 8 for each of at most 8)"},
		}}},
		"a list of texts": {map[string]types.AttributeValue{"lockQueue": &types.AttributeValueMemberL{Value: []types.AttributeValue{word("Ann")}}},
			repo.State{Foreign: []repo.Foreign{{Name: "lockQueue", Role: "LockQueue", Why: "type S in a list, not the place of one who waits in line (bytes, 4)"}}}},
		"a list of longer bytes": {map[string]types.AttributeValue{"lockQueue": queue("aaaaa")},
			repo.State{Foreign: []repo.Foreign{{Name: "lockQueue", Role: "LockQueue", Why: "type B, 5 bytes in a list, not the place of one who waits in line (bytes, 4)"}}}},
	} {
		if diff := cmp.Diff(c.want, table.State(c.item), cmp.Comparer(time.Time.Equal)); diff != "" {
			t.Errorf("%s: want -, got +:\n%s", what, diff)
		}
	}
}

// queue is a queue of these entries; "": somebody has left that place.
func queue(entries ...string) types.AttributeValue {
	l := &types.AttributeValueMemberL{}
	for _, e := range entries {
		var v types.AttributeValue = &types.AttributeValueMemberB{Value: []byte(e)}
		if e == "" {
			v = &types.AttributeValueMemberNULL{Value: true}
		}
		l.Value = append(l.Value, v)
	}
	return l
}
