package beside_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/beside"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// operations are so many ids of operations, whose texts begin like that.
func operations(begin string, n int) types.AttributeValue {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprint(begin, i)
	}
	return ids(texts...)
}

// mover is an id whose writer moves others where it races, and waiter one that leaves that
// to another.
func movers() (mover, waiter protocol.OnceID) {
	for i := 0; ; i++ {
		id := protocol.NewOnceID(fmt.Sprint(i))
		if id[len(id)-1]%16 == 0 {
			mover = id
		} else {
			waiter = id
		}
		if mover != (protocol.OnceID{}) && waiter != (protocol.OnceID{}) {
			return mover, waiter
		}
	}
}

// Each row is an item, as a write in epoch 10 finds it, and how many entries go to rows
// beside it before: by one that has read the item, and by one that has not.
func TestWhatGoesToRows(t *testing.T) {
	mover, waiter := movers()
	none, print := protocol.OnceID{}, mover.Fingerprint([]byte("a"))
	held := ddb.Text("me#1")
	for name, row := range map[string]struct {
		present, past types.AttributeValue
		mark          types.AttributeValue
		held          types.AttributeValue
		id, print     protocol.OnceID
		read, blind   int
	}{
		"no ids":                         {nil, nil, nil, nil, mover, none, 0, 0},
		"room for one":                   {operations("a", 63), nil, ddb.Integer(10), nil, mover, none, 0, 0},
		"full":                           {operations("a", 64), nil, ddb.Integer(10), nil, mover, none, 64, 0},
		"full, with a past":              {operations("a", 64), operations("b", 64), ddb.Integer(10), nil, mover, none, 128, 0},
		"full, for another to move":      {operations("a", 64), nil, ddb.Integer(10), nil, waiter, none, 0, 0},
		"full, under the lock":           {operations("a", 64), nil, ddb.Integer(10), held, waiter, none, 64, 0},
		"full, room with a fingerprint":  {operations("a", 64), nil, ddb.Integer(10), nil, mover, print, 0, 0},
		"full with fingerprints":         {operations("a", 128), nil, ddb.Integer(10), nil, mover, print, 128, 0},
		"twice as many":                  {operations("a", 128), nil, ddb.Integer(10), nil, waiter, none, 128, 0},
		"twice as many, and a mover":     {operations("a", 128), nil, ddb.Integer(10), nil, mover, none, 128, 128},
		"three times":                    {operations("a", 192), nil, ddb.Integer(10), nil, waiter, none, 192, 192},
		"full, with rows":                {operations("a", 64), nil, ddb.Text("10 9 3 r"), nil, mover, none, 64, 0},
		"full, an epoch ago":             {operations("a", 64), operations("b", 64), ddb.Integer(9), nil, mover, none, 0, 0},
		"filled by an earlier program":   {operations("a", 4096), operations("b", 4096), ddb.Integer(10), nil, waiter, none, 256, 256},
		"the same, an epoch ago":         {operations("a", 4096), operations("b", 4096), ddb.Integer(9), nil, waiter, none, 256, 256},
		"its past alone":                 {operations("a", 1), operations("b", 4096), ddb.Integer(10), nil, mover, none, 256, 256},
		"ids that are no operations'":    {manyIDs(192), nil, ddb.Integer(10), nil, mover, none, 0, 0},
		"room is not made by one's past": {manyIDs(4096), operations("b", 200), ddb.Integer(10), nil, mover, none, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			item := ddb.Item{"id": ddb.Text("x"), "once": row.present, "oncePast": row.past, "onceEpoch": row.mark, "lockedBy": row.held}
			for name, v := range item {
				if v == nil {
					delete(item, name)
				}
			}
			for blind, want := range map[bool]int{false: row.read, true: row.blind} {
				move := beside.MoveFor(remembering, item, row.id, row.print, 10, blind)
				if n := goes(move); n != want {
					t.Errorf("%d entries go, want %d (blind: %v)", n, want, blind)
				}
				if move != nil {
					movesThem(t, item, row.id, move)
				}
			}
		})
	}
}

// goes is how many entries go.
func goes(move *beside.Move) (n int) {
	if move != nil {
		for _, row := range move.Rows {
			n += len(row.Entries)
		}
	}
	return n
}

// movesThem fails the test unless the write that remembers an id takes from the item what
// has gone, keeps what has not, and gives it another mark.
func movesThem(t *testing.T, item ddb.Item, id protocol.OnceID, move *beside.Move) {
	t.Helper()
	d, err := beside.Remember(remembering, item, id, protocol.OnceID{}, 10, move)
	if err != nil {
		t.Fatal(err)
	}
	after := ddb.Item{}
	for name, v := range item {
		if !slices.Contains(d.Remove, name) {
			after[name] = v
		}
	}
	for _, a := range d.Set {
		after[a.Name] = a.Value
	}
	was, is := remembering.MarkOf(item), remembering.MarkOf(after)
	if is.Moves != was.Moves+1 || is.Rows == "" || is.Epoch != 10 || is.Moved != was.Epoch || !is.Beside(10) {
		t.Errorf("the mark goes from %+v to %+v", was, is)
	}
	delete(after, "lockedBy") // what else a lock has is not here
	if err := remembering.CheckShape(after); err != nil {
		t.Error(err)
	}
	for _, row := range move.Rows {
		for _, entry := range row.Entries {
			if lockless.Remembers(remembering, after, protocol.OnceID(entry)) {
				t.Fatal("what has gone is on the item still")
			}
			if key := beside.RowOf(remembering, after, protocol.OnceID(entry)); !ddb.EqualItems(key, row.Key) {
				t.Fatalf("the row is %v, and asked for as %v", row.Key, key)
			}
		}
	}
	if !lockless.Remembers(remembering, after, id) {
		t.Error("the item does not remember the id")
	}
	if again := beside.MoveFor(remembering, after, id, protocol.OnceID{}, 10, false); goes(again) > 0 && goes(move) < 256 {
		t.Errorf("%d more go after all have gone", goes(again))
	}
}

// A move is of one state of an item.
func TestAMoveOfAnotherState(t *testing.T) {
	mover, _ := movers()
	item := ddb.Item{"id": ddb.Text("x"), "once": operations("a", 64), "onceEpoch": ddb.Integer(10)}
	move := beside.MoveFor(remembering, item, mover, protocol.OnceID{}, 10, false)
	for name, other := range map[string]ddb.Item{
		"another mark":      {"id": ddb.Text("x"), "once": operations("a", 64), "onceEpoch": ddb.Text("10 10 1 r")},
		"another life":      {"id": ddb.Text("x"), "once": operations("b", 64), "onceEpoch": ddb.Integer(10)},
		"one of them fewer": {"id": ddb.Text("x"), "once": operations("a", 63), "onceEpoch": ddb.Integer(10)},
	} {
		d, err := beside.Remember(remembering, other, mover, protocol.OnceID{}, 10, move)
		if err != nil || len(d.Set) != 1 || len(d.Remove) != 0 {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
	more := ddb.Item{"id": ddb.Text("x"), "once": operations("a", 70), "onceEpoch": ddb.Integer(10)}
	d, err := beside.Remember(remembering, more, mover, protocol.OnceID{}, 10, move)
	if err != nil || len(d.Set[0].Value.(*types.AttributeValueMemberBS).Value) != 7 {
		t.Errorf("more ids: %v, %v", d, err)
	}
}

// What a row says counts for two epochs of the item.
func TestHowLongARowCounts(t *testing.T) {
	row := ddb.Item{"once": ids("m"), "onceEpoch": ddb.Integer(10)}
	item := func(epoch int64) ddb.Item {
		return ddb.Item{"once": ids("a"), "onceEpoch": stored.Mark{Epoch: epoch, Moved: 10, Moves: 1, Rows: "r"}.Value()}
	}
	for _, c := range []struct {
		epoch, clock int64
		want         bool
	}{{10, 9, true}, {10, 10, true}, {10, 11, true}, {11, 10, true}, {10, 12, false}, {12, 10, false}} {
		if got := beside.InRow(remembering, item(c.epoch), row, c.clock) != nil; got != c.want {
			t.Errorf("an item of epoch %d, a clock in %d: %v", c.epoch, c.clock, got)
		}
		if got := remembering.MarkOf(item(c.epoch)).Beside(c.clock); got != c.want {
			t.Errorf("an item of epoch %d, a clock in %d: rows are asked: %v", c.epoch, c.clock, got)
		}
	}
}
