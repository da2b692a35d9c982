package protocol

import (
	"bytes"
	"testing"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// An item is remembered from the first question on, as it was shown last, unless it
// could not be the library's.
func TestSights(t *testing.T) {
	core := Of(stored.New(&stored.Table{Table: &ddb.Table{Name: "t", Partition: "id"}, Version: "version", Attr: stored.Attributes{Writers: "writers", Tombstone: "tombstone"}}))
	key := ddb.Item{"id": ddb.Text("p")}
	ring := func(b byte) []byte { return bytes.Repeat([]byte{b}, stored.RingID) }
	image := func(version int64, b byte) ddb.Item {
		return ddb.Item{"id": ddb.Text("p"), "version": ddb.Integer(version), "writers": ddb.Bytes(ring(b))}
	}
	is := func(what string, version int64, b byte) {
		t.Helper()
		if s := core.Sighted(key); s.Version != version || version > 0 && !bytes.Equal(s.Ring, ring(b)) {
			t.Errorf("%s: %+v, want version %d", what, s, version)
		}
	}
	core.Saw(image(1, 1))
	is("before anybody has asked", 0, 0)
	core.Saw(image(2, 2))
	is("shown", 2, 2)
	for what, foreign := range map[string]ddb.Item{
		"no version":        {"id": ddb.Text("p"), "writers": ddb.Bytes(ring(3))},
		"foreign ring":      {"id": ddb.Text("p"), "writers": ddb.Text("x"), "version": ddb.Integer(3)},
		"foreign tombstone": {"id": ddb.Text("p"), "writers": ddb.Bytes(ring(3)), "version": ddb.Integer(3), "tombstone": ddb.Text("x")},
		"another item":      {"id": ddb.Text("q"), "writers": ddb.Bytes(ring(3)), "version": ddb.Integer(3)},
	} {
		core.Saw(foreign)
		is(what, 2, 2)
	}
	core.Saw(image(1, 4))
	is("another life", 1, 4)
	core.Saw(ddb.Item{"id": ddb.Text("p"), "version": ddb.Integer(3)})
	is("written by others, who leave no ring", 0, 0)
	core.See(key, 5, ddb.Bytes(ring(5)))
	is("left", 5, 5)
}
