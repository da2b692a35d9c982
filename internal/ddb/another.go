package ddb

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var errAnother = errors.New("it shows another item than was asked for: it is another request's")

// shownOf is what an answer says of the item with a key, unless it shows another one: who
// mixes up the answers of requests leaves each as the service has made it.
func shownOf(key, item Item, err error) (Item, error) {
	shown := item
	if image, failed := conditionFailed(err); failed {
		shown = image
	}
	for name, v := range key {
		if at := shown[name]; at != nil && !Equal(at, v) {
			return nil, &ReplyError{errAnother}
		}
	}
	return item, err
}

// ofWrites is the same for the items because of which a transaction was cancelled.
func ofWrites(writes []types.TransactWriteItem, err error) error {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != len(writes) {
		return err
	}
	for i, reason := range cancelled.CancellationReasons {
		if _, another := shownOf(keyOf(writes[i]), reason.Item, nil); another != nil {
			return another
		}
	}
	return err
}

// keyOf is the key of what a part of a transaction writes; of what it makes, as far as its
// condition names it.
func keyOf(w types.TransactWriteItem) Item {
	switch {
	case w.Update != nil:
		return w.Update.Key
	case w.Delete != nil:
		return w.Delete.Key
	case w.ConditionCheck != nil:
		return w.ConditionCheck.Key
	case w.Put != nil:
		name := w.Put.ExpressionAttributeNames["#pk"]
		return Item{name: w.Put.Item[name]}
	}
	return nil
}
