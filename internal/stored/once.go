package stored

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// An item remembers the ids of the operations that were made on it once, in three
// attributes: "once" has those of the present epoch, "oncePast" those of the one
// before, and "onceEpoch" says which epoch is the present one. A writer in a later
// epoch moves the present ids to the past, over those that were there. So an id is
// remembered for an epoch at least, what is kept is bounded, and a writer whose
// clock is slow makes nobody forget. An item for which there come many has others in rows
// beside it: see Mark.
const (
	OnceIDBytes = 12
	// OnceRoom is how many ids an epoch has on the item: less than a kilobyte. Beyond that
	// they are moved to rows beside it.
	OnceRoom = 64
	// MostOnceIDs is how many entries an epoch may have on an item, as earlier programs left
	// them: 48 KB, and as many for the past.
	MostOnceIDs = 4096
)

// The ends of the names of the attributes beside Attributes.Once.
const (
	oncePast  = "Past"
	onceEpoch = "Epoch"
)

// OnceNames are the names of the attributes that remember ids.
func (a Attributes) OnceNames() [3]string {
	return [3]string{a.Once, a.Once + oncePast, a.Once + onceEpoch}
}

// OnceIDs is how many ids an item remembers. An id and its fingerprint are one.
func (t *Table) OnceIDs(item ddb.Item) int {
	ids := map[string]bool{}
	for _, name := range t.Once[:2] {
		if set, ok := item[name].(*types.AttributeValueMemberBS); ok {
			for _, entry := range set.Value {
				ids[string(entry[:min(len(entry), OnceIDBytes/2)])] = true
			}
		}
	}
	return len(ids)
}

// IsOnce reports whether an attribute remembers ids.
func (t *Table) IsOnce(name string) bool { return slices.Contains(t.Once[:], name) }

// checkOnce refuses attributes under the names of those that remember ids, which
// are not the library's.
func (t *Table) checkOnce(item ddb.Item) error {
	epoch, there := item[t.Once[2]]
	for i, name := range t.Once[:2] {
		v, ok := item[name]
		if !ok {
			if there && i == 0 {
				return &ShapeError{t.Once[2], fmt.Errorf("it stands without %q: no epoch begins without an id", name)}
			}
			continue
		}
		set, isSet := v.(*types.AttributeValueMemberBS)
		foreign := func(id []byte) bool { return len(id) != OnceIDBytes }
		if !isSet || len(set.Value) > MostOnceIDs || slices.ContainsFunc(set.Value, foreign) {
			return &ShapeError{name, fmt.Errorf("%s, not ids of operations (a set of at most %d, each of %d bytes)", describe(v), MostOnceIDs, OnceIDBytes)}
		}
		if !there {
			return &ShapeError{name, fmt.Errorf("it stands without %q, which says of what epoch it is", t.Once[2])}
		}
	}
	if !there {
		return nil
	}
	if _, err := parseMark(epoch); err != nil {
		return &ShapeError{t.Once[2], err}
	}
	return nil
}
