package adoption

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// shown

// Account was there before; new are the tags repo, and the version, which optimistic alone needs.
type Account struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Balance int    `dynamodbav:"balance"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// openAccounts adopts a table: it reads the description of the table, and changes nothing.
func openAccounts(ctx context.Context, client repo.Client, table string) (*optimistic.Repository[Account], error) {
	accounts, err := repo.NewTable[Account](client, table, repo.TableConfig{})
	if err != nil {
		return nil, err
	}
	if err := accounts.EnsureTable(ctx); err != nil {
		return nil, err
	}
	return optimistic.New(accounts, optimistic.Config{})
}

// end of what is shown

// older are items as programs wrote them before: without a version, with version 0, and counted by hand.
func older() map[string]row {
	type account struct {
		ID      string `dynamodbav:"id"`
		Balance int    `dynamodbav:"balance"`
		Owner   string `dynamodbav:"owner"` // what Account does not know
	}
	items := map[string]row{}
	for _, name := range []string{"none", "zero", "seven"} {
		items[name], _ = attributevalue.MarshalMap(account{name, 10, "Ann"}) // it has nothing that fails
	}
	items["zero"]["version"], items["seven"]["version"] = number("0"), number("7")
	return items
}

// Each call works on items from before, and leaves alone what the type does not know.
func TestItemsOfAttributevalueAreAdopted(t *testing.T) {
	name := oldTable(t, "id")
	accounts := must(openAccounts(t.Context(), client, name))(t)
	table := must(repo.NewTable[Account](client, name, repo.TableConfig{}))(t)
	locks := must(pessimistic.New(table, pessimistic.Config{}))(t)
	take := func(_ context.Context, a *Account) error { a.Balance--; return nil }
	for call, do := range map[string]func(context.Context, repo.Key) error{
		"Save": func(ctx context.Context, key repo.Key) error {
			a, err := accounts.Get(ctx, key)
			if err != nil {
				return err
			}
			a.Balance--
			_, err = accounts.Save(ctx, a)
			return err
		},
		"Update":      func(ctx context.Context, key repo.Key) error { _, err := accounts.Update(ctx, key, take); return err },
		"pessimistic": func(ctx context.Context, key repo.Key) error { _, err := locks.Update(ctx, key, take); return err },
		"Apply": func(ctx context.Context, key repo.Key) error {
			_, err := accounts.Apply(ctx, key, expression.Add(expression.Name("balance"), expression.Value(-1)))
			return err
		},
		"a transaction": func(ctx context.Context, key repo.Key) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				_, err := accounts.In(tx).Update(ctx, key, take)
				return err
			})
		},
	} {
		for id, item := range older() {
			put(t, name, item)
			if err := do(t.Context(), repo.Key{Partition: id}); err != nil {
				t.Errorf("%s of %s: %v", call, id, err)
				continue
			}
			got, want := raw(t, name, "id", id), maps.Clone(item)
			want["balance"] = number("9")
			same(t, call+" of "+id, got, without(want, "version"))
			version := map[string]string{"none": "1", "zero": "1", "seven": "8"}[id]
			if n, ok := got["version"].(*types.AttributeValueMemberN); !ok || n.Value != version {
				t.Errorf("%s of %s: the version is %v, not %s", call, id, got["version"], version)
			}
		}
	}
	for id, item := range older() {
		put(t, name, item)
		check(t, accounts.Remove(t.Context(), must(accounts.Get(t.Context(), repo.Key{Partition: id}))(t)))
		put(t, name, item)
		check(t, locks.Delete(t.Context(), repo.Key{Partition: id}))
		put(t, name, item)
	}
	must(accounts.Create(t.Context(), Account{ID: "new"}))(t)
	if _, err := accounts.Create(t.Context(), Account{ID: "none"}); !errors.Is(err, repo.ErrExists) {
		t.Errorf("a second item under a key: %v", err)
	}
	_, err := accounts.Save(t.Context(), Account{ID: "seven", Balance: 1, Version: 6})
	if !errors.Is(err, repo.ErrConflict) {
		t.Errorf("Save at a version that has passed: %v", err)
	}
}

func without(item row, names ...string) row {
	item = maps.Clone(item)
	for _, name := range names {
		delete(item, name)
	}
	return item
}

// An item without an event time is older than every event.
func TestAnEventForAnItemFromBefore(t *testing.T) {
	type parcel struct {
		ID    string `dynamodbav:"id" repo:"pk"`
		Place string `dynamodbav:"place"`
		Seen  int64  `dynamodbav:"seen" repo:"eventtime"`
	}
	name := oldTable(t, "id")
	put(t, name, row{"id": text("p"), "place": text("depot"), "theirs": text("kept")})
	parcels := must(nolock.New(must(repo.NewTable[parcel](client, name, repo.TableConfig{}))(t), nolock.Config{}))(t)
	check(t, parcels.Put(t.Context(), parcel{"p", "train", 5}))
	same(t, "the item", raw(t, name, "id", "p"), row{"id": text("p"), "place": text("train"), "theirs": text("kept"), "seen": number("5")})
}

// The way back: programs from before read and write the items as ever; what they put whole begins anew.
func TestTheWayBack(t *testing.T) {
	name := oldTable(t, "id")
	accounts := must(openAccounts(t.Context(), client, name))(t)
	item := older()["none"]
	put(t, name, item)
	take := func(_ context.Context, a *Account) error { a.Balance--; return nil }
	must(accounts.Update(t.Context(), repo.Key{Partition: "none"}, take))(t)
	same(t, "what programs from before read", raw(t, name, "id", "none"), func() row { i := maps.Clone(item); i["balance"] = number("9"); return i }())
	put(t, name, item) // one of them writes it
	if a := must(accounts.Update(t.Context(), repo.Key{Partition: "none"}, take))(t); a.Version != 1 || a.Balance != 9 {
		t.Errorf("forward again: %+v", a)
	}
	for range 9 {
		must(accounts.Update(t.Context(), repo.Key{Partition: "none"}, func(_ context.Context, a *Account) error { a.Balance = 19 - a.Balance; return nil }))(t)
	}
	if ring, ok := raw(t, name, "id", "none")["writers"].(*types.AttributeValueMemberB); !ok || len(ring.Value) != 64 {
		t.Errorf("writers are %v", ring)
	}
	must(accounts.Update(t.Context(), repo.Key{Partition: "none"}, func(_ context.Context, a *Account) error { a.Balance = 9; return nil }))(t)
	must(client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{ // what is left can be removed
		TableName: &name, Key: row{"id": text("none")}, UpdateExpression: aws.String("REMOVE writers, lockToken, lockStolen, version"),
		ConditionExpression: aws.String("attribute_not_exists(lockedBy)"),
	}))(t)
	same(t, "what is left", raw(t, name, "id", "none"), func() row { i := maps.Clone(item); i["balance"] = number("9"); return i }())
}

// EnsureTable changes no table: one without TTL is taken as it is, one whose TTL is on another attribute is refused, and says why.
func TestEnsureTableOnTablesFromBefore(t *testing.T) {
	name := oldTable(t, "id")
	must(openAccounts(t.Context(), client, name))(t)
	ttl := func() types.TimeToLiveDescription {
		return *must(client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &name}))(t).TimeToLiveDescription
	}
	if ttl().TimeToLiveStatus == types.TimeToLiveStatusEnabled {
		t.Error("TTL was switched on")
	}
	must(client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("gone"), Enabled: aws.Bool(true)}}))(t)
	_, err := openAccounts(t.Context(), client, name)
	if !errors.Is(err, repo.ErrSchema) || !strings.Contains(err.Error(), "Attributes.TTL") {
		t.Errorf("TTL on an attribute of theirs: %v", err)
	}
	table := must(repo.NewTable[Account](client, name, repo.TableConfig{Attributes: repo.Attributes{TTL: "gone"}}))(t)
	check(t, table.EnsureTable(t.Context()))
	if *ttl().AttributeName != "gone" {
		t.Errorf("TTL is now %v", ttl())
	}
}
