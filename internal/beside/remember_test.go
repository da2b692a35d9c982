package beside_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/beside"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// errFull is what becomes of the error of an item that is full.
var errFull = errors.New("full")

// remembering is a table whose items remember ids, each for a second at least.
var remembering = protocol.Of(stored.New(&stored.Table{
	Table:     &ddb.Table{Name: "t", Classify: func(error) error { return errFull }, Partition: "id"},
	Attr:      stored.Attributes{Once: "once", LockedBy: "lockedBy"},
	Retention: time.Second,
}))

func ids(texts ...string) types.AttributeValue {
	set := &types.AttributeValueMemberBS{}
	for _, text := range texts {
		id := protocol.NewOnceID(text)
		set.Value = append(set.Value, id[:])
	}
	return set
}

// manyIDs are so many, none of which is that of a text.
func manyIDs(n int) types.AttributeValue {
	set := &types.AttributeValueMemberBS{}
	for i := range n {
		set.Value = append(set.Value, binary.BigEndian.AppendUint32(make([]byte, 8), uint32(i)))
	}
	return set
}

// Each row is an item, as a write in epoch 10 finds it: what the write sets if it has
// read the item, and how it is tried next if it has not, and was refused by it.
func TestRememberInEpochTen(t *testing.T) {
	id := protocol.NewOnceID("new")
	first := lockless.NewUnreadOnce(id, protocol.OnceID{}, 10)
	in := func(epoch int64, rotates bool) lockless.UnreadOnce {
		return lockless.UnreadOnce{ID: id, First: 10, Epoch: epoch, Rotates: rotates}
	}
	at := func(epoch int64, mark stored.Mark) lockless.UnreadOnce {
		next := in(epoch, false)
		next.Mark = mark
		return next
	}
	turning := func(mark stored.Mark) lockless.UnreadOnce {
		next := in(10, true)
		next.Mark = mark
		return next
	}
	roomFor := func(n int) lockless.UnreadOnce {
		next := in(10, false)
		next.Room = n
		return next
	}
	number := ddb.Integer
	for name, row := range map[string]struct {
		item  ddb.Item
		sets  ddb.Item // nil: the item is full
		next  lockless.UnreadOnce
		other bool // next is another try than the first
	}{
		"no item":                  {ddb.Item{}, ddb.Item{"once": ids("new"), "onceEpoch": number(10)}, first, false},
		"the same epoch":           {ddb.Item{"once": ids("a"), "onceEpoch": number(10)}, ddb.Item{"once": ids("a", "new")}, first, false},
		"the same, with a past":    {ddb.Item{"once": ids("a"), "oncePast": ids("b"), "onceEpoch": number(10)}, ddb.Item{"once": ids("a", "new")}, first, false},
		"the epoch before":         {ddb.Item{"once": ids("a"), "oncePast": ids("b"), "onceEpoch": number(9)}, ddb.Item{"once": ids("new"), "oncePast": ids("a"), "onceEpoch": number(10)}, in(10, true), true},
		"long ago":                 {ddb.Item{"once": ids("a"), "onceEpoch": number(0)}, ddb.Item{"once": ids("new"), "oncePast": ids("a"), "onceEpoch": number(10)}, in(10, true), true},
		"a later epoch":            {ddb.Item{"once": ids("a"), "onceEpoch": number(12)}, ddb.Item{"once": ids("a", "new")}, in(12, false), true},
		"room for one":             {ddb.Item{"once": manyIDs(4095), "onceEpoch": number(10)}, ddb.Item{"once": nil}, roomFor(4096), true},
		"rows beside":              {ddb.Item{"once": ids("a"), "onceEpoch": ddb.Text("10 10 3 r")}, ddb.Item{"once": ids("a", "new")}, at(10, stored.Mark{Epoch: 10, Moved: 10, Moves: 3, Rows: "r"}), true},
		"rows of the epoch before": {ddb.Item{"once": ids("a"), "oncePast": ids("b"), "onceEpoch": ddb.Text("9 9 3 r")}, ddb.Item{"once": ids("new"), "oncePast": ids("a"), "onceEpoch": ddb.Text("10 9 3 r")}, turning(stored.Mark{Epoch: 9, Moved: 9, Moves: 3, Rows: "r"}), true},
		"rows that are forgotten":  {ddb.Item{"once": ids("a"), "onceEpoch": ddb.Text("9 8 3 r")}, ddb.Item{"once": ids("new"), "oncePast": ids("a"), "onceEpoch": number(10)}, turning(stored.Mark{Epoch: 9, Moved: 8, Moves: 3, Rows: "r"}), true},
		"full":                     {ddb.Item{"once": manyIDs(4096), "onceEpoch": number(10)}, nil, first, false},
		"full, in a later epoch":   {ddb.Item{"once": manyIDs(4096), "onceEpoch": number(11)}, nil, in(11, false), false},
		"full, in an earlier one":  {ddb.Item{"once": manyIDs(4096), "onceEpoch": number(9)}, ddb.Item{"once": ids("new"), "oncePast": manyIDs(4096), "onceEpoch": number(10)}, in(10, true), true},
		"full, and its past too":   {ddb.Item{"once": manyIDs(4096), "oncePast": manyIDs(4096), "onceEpoch": number(10)}, nil, first, false},
		"a past that is full only": {ddb.Item{"once": ids("a"), "oncePast": manyIDs(4096), "onceEpoch": number(10)}, ddb.Item{"once": ids("a", "new")}, first, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(row.item)
			d, err := beside.Remember(remembering, row.item, id, protocol.OnceID{}, 10, nil)
			sets := d.Set
			next, other, refused := first.After(remembering, row.item, 10, nil)
			if row.sets == nil {
				if !errors.Is(err, errFull) || !errors.Is(refused, errFull) {
					t.Errorf("an item that is full: %v, and unread %v", err, refused)
				}
				return
			}
			if err != nil || refused != nil {
				t.Fatalf("%v, and unread %v", err, refused)
			}
			if next != row.next || other != row.other {
				t.Errorf("next is %+v, another %v", next, other)
			}
			if len(sets) != len(row.sets) {
				t.Errorf("it sets %v, want %v", sets, row.sets)
			}
			now := ddb.Item{}
			for name, v := range row.item {
				now[name] = v
			}
			for _, a := range sets {
				if want, ok := row.sets[a.Name]; !ok || want != nil && !ddb.Equal(a.Value, want) {
					t.Errorf("it sets %s to %v, want %v", a.Name, a.Value, want)
				}
				now[a.Name] = a.Value
			}
			if !lockless.Remembers(remembering, now, id) || lockless.Remembers(remembering, row.item, id) {
				t.Error("the item remembers the id before it, or not behind it")
			}
			if after := fmt.Sprint(row.item); after != before {
				t.Error("the image has changed")
			}
		})
	}
}

// An item remembers an id for an epoch after its own. So a try in the epoch after the
// first one's finds what an attempt has left, and one in a later epoch may not.
func TestWhenAnIDMayBeForgotten(t *testing.T) {
	first := lockless.NewUnreadOnce(protocol.NewOnceID("m"), protocol.OnceID{}, 10)
	for epoch, want := range map[int64]bool{9: false, 10: false, 11: false, 12: true, 13: true} {
		next, _, err := first.After(remembering, ddb.Item{"once": ids("a"), "onceEpoch": ddb.Integer(epoch)}, 10, nil)
		if err != nil || next.Forgets() != want {
			t.Errorf("in epoch %d: %v, %v", epoch, next.Forgets(), err)
		}
	}
}

// What an item tells of an id that comes with the fingerprint of its request, or without.
func TestRecall(t *testing.T) {
	id, other := protocol.NewOnceID("m"), protocol.NewOnceID("n")
	a, b, none := id.Fingerprint([]byte("a")), id.Fingerprint([]byte("b")), protocol.OnceID{}
	if a == b || a == id || other.Fingerprint([]byte("a")) == a {
		t.Error("fingerprints are alike")
	}
	entries := func(all ...protocol.OnceID) types.AttributeValue {
		set := &types.AttributeValueMemberBS{}
		for _, e := range all {
			set.Value = append(set.Value, e[:])
		}
		return set
	}
	for name, row := range map[string]struct {
		item              ddb.Item
		withA, withB, not protocol.Memory
		ids               int
	}{
		"nothing":                 {ddb.Item{}, protocol.NotMade, protocol.NotMade, protocol.NotMade, 0},
		"another id":              {ddb.Item{"once": entries(other, other.Fingerprint([]byte("a")))}, protocol.NotMade, protocol.NotMade, protocol.NotMade, 1},
		"without":                 {ddb.Item{"once": entries(id)}, protocol.Made, protocol.Made, protocol.Made, 1},
		"with a":                  {ddb.Item{"once": entries(id, a)}, protocol.Made, protocol.MadeOtherwise, protocol.Made, 1},
		"with a, in another form": {ddb.Item{"once": entries(a, other, id)}, protocol.Made, protocol.MadeOtherwise, protocol.Made, 2},
		"with b, in the past":     {ddb.Item{"once": entries(other), "oncePast": entries(b, id)}, protocol.MadeOtherwise, protocol.Made, protocol.Made, 2},
	} {
		for print, want := range map[protocol.OnceID]protocol.Memory{a: row.withA, b: row.withB, none: row.not} {
			if got := remembering.Recall(row.item, id, print); got != want {
				t.Errorf("%s: %x: %v, want %v", name, print, got, want)
			}
		}
		if n := remembering.OnceIDs(row.item); n != row.ids {
			t.Errorf("%s: %d ids, want %d", name, n, row.ids)
		}
	}
}
