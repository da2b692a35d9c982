package ddb

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var errAnother = errors.New("it shows another item than was asked for: it is another request's")

// shownOf is what an answer says of the item with a key, unless it shows another one: who
// mixes up the answers of requests leaves each as the service has made it. An item is shown
// with its key: one without these attributes is of another table.
func shownOf(key, item Item, err error) (Item, error) {
	shown := item
	if image, failed := conditionFailed(err); failed {
		shown = image
	}
	if len(shown) > 0 && !has(shown, key) {
		return nil, &ReplyError{errAnother}
	}
	return item, err
}

// has reports whether an item has values.
func has(item, values Item) bool {
	for name, v := range values {
		if !Equal(item[name], v) {
			return false
		}
	}
	return true
}

// ofWrites is the same for the items because of which a transaction was cancelled.
func ofWrites(writes []types.TransactWriteItem, err error) error {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != len(writes) {
		return err
	}
	for i, reason := range cancelled.CancellationReasons {
		if _, another := shownOf(keyOf(writes, i), reason.Item, nil); another != nil {
			return another
		}
	}
	return err
}

// keyOf is the key of what a part of a transaction writes. What it makes has the attributes
// that are the key of another part's item in the same table: there is one.
func keyOf(writes []types.TransactWriteItem, i int) Item {
	table, key := partOf(writes[i])
	if writes[i].Put == nil {
		return key
	}
	made := Item{}
	for _, w := range writes {
		if at, like := partOf(w); aws.ToString(at) == aws.ToString(table) {
			for name := range like {
				made[name] = writes[i].Put.Item[name]
			}
		}
	}
	return made
}

// partOf is the table of a part of a transaction, and the key that it names.
func partOf(w types.TransactWriteItem) (table *string, key Item) {
	switch {
	case w.Update != nil:
		return w.Update.TableName, w.Update.Key
	case w.Delete != nil:
		return w.Delete.TableName, w.Delete.Key
	case w.ConditionCheck != nil:
		return w.ConditionCheck.TableName, w.ConditionCheck.Key
	case w.Put != nil:
		return w.Put.TableName, nil
	}
	return nil, nil
}
