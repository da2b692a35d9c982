package typed

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Table is a table of users with its inner side. What works on it handles a user's
// item as a pointer in an any: so it is compiled once, and not again for each type
// of each program. Only the faces, which are thin, have a type parameter.
type Table struct {
	*repo.KeyTable
	items
	Core *protocol.Core
}

// items is how package repo maps a user's type, of which every item here is a
// pointer.
type items interface {
	// Encode returns the attributes of an item; EncodeGiven those of one that a
	// caller hands in: it refuses what Encode takes, but no event may have.
	Encode(item any) (ddb.Item, error)
	EncodeGiven(item any) (ddb.Item, error)
	// CheckEvent refuses the time or id of an event that the type could not read back.
	CheckEvent(event ddb.Item) error
	// Start is Decode, and encodes those fields of which Changes cannot tell from the item
	// and from raw how they were; Changes is what a change has made of a copy of the item. Start is not ok where
	// Changes cannot be asked, and has encoded all fields then; Changes is not ok if the
	// key is another one.
	Start(raw ddb.Item) (item any, before ddb.Item, ok bool, err error)
	Changes(raw, before ddb.Item, was, item any) (d ddb.Diff, ok bool, err error)
	// Decode makes a new item.
	Decode(raw ddb.Item) (any, error)
	KeyOf(item any) repo.Key
	Version(item any) int64
	// WithVersion returns a copy with another version; just a copy where the type
	// has none.
	WithVersion(item any, version int64) any
	Copy(item any) any
	// Stamp returns a copy with the type of the table, and the time of its change, or
	// the item where its type has no role for them; begins says that it is there from
	// then on.
	Stamp(item any, now time.Time, begins bool) any
	// Altered is the field that a change has altered though the library writes it, ""
	// if there is none.
	Altered(was, is any) string
	// Value is what the item points to.
	Value(item any) any
}

// CheckMade refuses a table that nobody has made.
func CheckMade[T any](table *repo.Table[T]) error {
	if table == nil || table.KeyTable == nil {
		return fmt.Errorf("%w: the table is nil, or not from repo.NewTable", repo.ErrConfig)
	}
	return nil
}

// TableOf opens a table of users, once for each strategy that works on it.
func TableOf[T any](table *repo.Table[T]) *Table { return tableOf(link.Of(table)) }

func tableOf(inner link.Inner) *Table {
	return &Table{inner.Keys.(*repo.KeyTable), inner.Items.(items), protocol.Of(inner.Table)}
}

// As is the result of a call for one that knows the type: the zero value where the
// call has no item.
func As[T any](item any, err error) (T, error) {
	if p, ok := item.(*T); ok {
		return *p, err
	}
	return *new(T), err
}

// ChangeOf is a user's change for those who do not know the type. No change stays
// none.
func ChangeOf[T any](change func(context.Context, *T) error) func(context.Context, any) error {
	if change == nil {
		return nil
	}
	return func(ctx context.Context, item any) error { return change(ctx, item.(*T)) }
}

// OperationOf is what a change is called in telemetry.
func OperationOf(create bool) string {
	if create {
		return "Upsert"
	}
	return "Update"
}

// Version of an image; 0 where it has none.
func Version(core *protocol.Core, image ddb.Item) int64 {
	if n, ok := image[core.Version].(*types.AttributeValueMemberN); ok {
		v, _ := ddb.Int(n)
		return v
	}
	return 0
}
