package ddb

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func ofAnotherRequest(err error) bool {
	var reply *ReplyError
	return errors.As(err, &reply)
}

func at(partition, sort string) Item { return Item{"pk": Text(partition), "sk": Text(sort)} }

// An item is shown with its whole key, unless there is none.
func TestItemsOfAnotherRequest(t *testing.T) {
	for name, c := range map[string]struct {
		shown   Item
		another bool
	}{
		"none":             {nil, false},
		"its key alone":    {at("p", "1"), false},
		"another":          {at("p", "2"), true},
		"of another table": {Item{"id": Text("p")}, true},
		"of one by pk":     {Item{"pk": Text("p")}, true},
	} {
		for _, err := range []error{nil, &types.ConditionalCheckFailedException{Item: c.shown}} {
			item := c.shown
			if err != nil {
				item = nil
			}
			if _, got := shownOf(at("p", "1"), item, err); ofAnotherRequest(got) != c.another {
				t.Errorf("%s, %v: %v", name, err, got)
			}
		}
	}
}

// What a transaction was to make has a sort key, too.
func TestCancelledBecauseOfAnotherItem(t *testing.T) {
	table := &Table{Name: "t", Partition: "pk", Sort: "sk", Classify: func(err error) error { return err }}
	w := table.NewWrite()
	w.IfAbsent("pk")
	row := at("p", "1")
	row["n"] = Number("1")
	elsewhere := types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("other"), Key: Item{"id": Text("x")}}}
	here := types.TransactWriteItem{Delete: &types.Delete{TableName: &table.Name, Key: at("p", "3")}}
	for name, put := range map[string]types.TransactWriteItem{"PutOf": table.PutOf(row), "Put": w.Put(row)} {
		for image, another := range map[string]bool{"1": false, "2": true} {
			reasons := []types.CancellationReason{{Code: aws.String("None")}, {Code: aws.String(conditionalCheckFailed), Item: at("p", image)}, {Code: aws.String("None")}}
			err := ofWrites([]types.TransactWriteItem{elsewhere, put, here}, &types.TransactionCanceledException{CancellationReasons: reasons})
			if ofAnotherRequest(err) != another {
				t.Errorf("%s, refused by %s: %v", name, image, err)
			}
		}
	}
}
