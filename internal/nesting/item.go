package nesting

import (
	"context"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// Item names an item.
type Item struct {
	table *stored.Table
	text  string
}

// ItemOf names an item by its encoded key.
func ItemOf(table *stored.Table, raw ddb.Item) Item { return Item{table, table.KeyText(raw)} }

// Is reports whether both are the same item, by whichever repository.
func (i Item) Is(other Item) bool {
	return i.text == other.text && i.table.Name == other.table.Name && same(i.table.Client, other.table.Client)
}

// same reports whether two clients go to the same tables: they are one, or have one
// Region, endpoint and account. A name and a key can be in two Regions, or accounts.
func same(a, b ddb.Client) bool {
	switch comparable := reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable(); {
	case comparable && a == b:
		return true
	case !comparable && reflect.TypeOf(a) == reflect.TypeOf(b):
		return true
	}
	type known interface{ Options() dynamodb.Options }
	x, isKnown := a.(known)
	y, too := b.(known)
	if !isKnown || !too {
		return false
	}
	one, other := x.Options(), y.Options()
	return one.Region == other.Region && aws.ToString(one.BaseEndpoint) == aws.ToString(other.BaseEndpoint) && sameAccount(one.Credentials, other.Credentials)
}

// patience is how long two clients of one Region are asked for their accounts. At least
// one of them has it in memory.
const patience = time.Second

// sameAccount reports whether credentials are known to be of one account.
func sameAccount(a, b aws.CredentialsProvider) bool {
	if a == nil || b == nil {
		return a == b
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	x, err := a.Retrieve(ctx)
	if err != nil {
		return false
	}
	y, err := b.Retrieve(ctx)
	if err != nil {
		return false
	}
	if x.AccountID != "" && y.AccountID != "" {
		return x.AccountID == y.AccountID
	}
	return x.AccessKeyID == y.AccessKeyID
}
