package ddb

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
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

// A page lies in the partition that was asked for, and behind the page before.
func TestPagesOfAnotherRequest(t *testing.T) {
	query := Asked{Of: Item{"pk": Text("p")}, Sort: "sk", After: at("p", "3")}
	down := query
	down.Descending = true
	narrow := query
	narrow.From, narrow.To, narrow.After = Text("3"), Text("5"), nil
	for name, c := range map[string]struct {
		asked   Asked
		items   []Item
		last    Item
		another bool
	}{
		"the first":                     {Asked{Of: query.Of, Sort: "sk"}, []Item{at("p", "1"), at("p", "2")}, at("p", "2"), false},
		"the next":                      {query, []Item{at("p", "4")}, at("p", "5"), false},
		"the last, of nothing":          {query, nil, nil, false},
		"the next, downwards":           {down, []Item{at("p", "2")}, at("p", "1"), false},
		"of an index, with equal keys":  {query, []Item{at("p", "3")}, nil, false},
		"an end that names no place":    {query, nil, Item{"pk": Text("p")}, false},
		"of a scan":                     {Asked{After: at("q", "1")}, []Item{at("p", "1"), at("a", "1")}, at("a", "1"), false},
		"of a range":                    {narrow, []Item{at("p", "3"), at("p", "4"), at("p", "5")}, at("p", "5"), false},
		"below the range":               {narrow, []Item{at("p", "2"), at("p", "3")}, nil, true},
		"above the range":               {narrow, []Item{at("p", "5"), at("p", "6")}, nil, true},
		"of a range of numbers":         {narrow, []Item{{"pk": Text("p"), "sk": Number("4")}}, nil, true},
		"of another partition":          {query, []Item{at("q", "4")}, nil, true},
		"of another one at the end":     {query, []Item{at("p", "4"), at("q", "4")}, nil, true},
		"empty, of another partition":   {query, nil, at("q", "4"), true},
		"the one before":                {query, []Item{at("p", "2"), at("p", "3")}, at("p", "3"), true},
		"the one before, without items": {query, nil, at("p", "3"), true},
		"the one before, of a scan":     {Asked{After: at("q", "1")}, []Item{at("q", "1")}, at("q", "1"), true},
		"the end of an earlier one":     {query, nil, at("p", "2"), true},
		"an earlier one, downwards":     {down, []Item{at("p", "4")}, nil, true},
		"of another table":              {Asked{}, []Item{{"id": Text("p")}}, nil, true},
		"of another table, by the sort": {Asked{}, []Item{{"pk": Text("p")}}, nil, true},
	} {
		table := &Table{Name: "t", Partition: "pk", Sort: "sk"}
		if err := table.another(&c.asked, c.items, c.last); ofAnotherRequest(err) != c.another {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The description of another table says nothing of this one.
func TestDescriptionOfAnotherTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &Table{Name: "arn:aws:dynamodb:eu-west-1:1:table/t", Timeout: time.Second, Classify: func(err error) error { return err }}
		for name, another := range map[string]bool{"t": false, "arn:aws:dynamodb:eu-west-1:1:table/t": false, "at": true} {
			err := table.ReadWith(t.Context(), "DescribeTable", func(context.Context, func(*dynamodb.Options)) (any, error) {
				return &dynamodb.DescribeTableOutput{Table: &types.TableDescription{TableName: &name}}, nil
			})
			if ofAnotherRequest(err) != another {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Each key of a batch is answered at most once, and no other.
func TestBatchesOfAnotherRequest(t *testing.T) {
	one, two, three := at("p", "1"), at("p", "2"), at("p", "3")
	for name, c := range map[string]struct {
		table       string
		found, left []Item
		another     bool
	}{
		"all":                    {"t", []Item{two, one}, nil, false},
		"one is not there":       {"t", []Item{two}, nil, false},
		"one is left over":       {"t", []Item{two}, []Item{one}, false},
		"another":                {"t", []Item{one, three}, nil, true},
		"another is left over":   {"t", []Item{one}, []Item{three}, true},
		"twice":                  {"t", []Item{one, one}, nil, true},
		"there, and left over":   {"t", []Item{one}, []Item{one}, true},
		"none, of another table": {"other", nil, nil, true},
	} {
		table := &Table{Name: "arn:aws:dynamodb:eu-west-1:1:table/t", Partition: "pk", Sort: "sk"}
		_, _, err := table.batchOf([]Item{one, two}, &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{c.table: c.found},
			UnprocessedKeys: map[string]types.KeysAndAttributes{c.table: {Keys: c.left}}})
		if ofAnotherRequest(err) != c.another {
			t.Errorf("%s: %v", name, err)
		}
	}
}
