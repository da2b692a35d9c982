package typed

import (
	"maps"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Total is an item after the changes of a group so far, as it would be stored
// if each of them had been written. It holds encodings alone, which no caller
// shares.
type Total struct {
	table   *Table
	from    Snapshot
	changed bool
	raw     ddb.Item // once something has changed
	before  ddb.Item // what the type makes of raw; nil: not known yet
	after   ddb.Item // the encoding that the last change left
	touched map[string]bool
}

// NewTotal is an item before the first change.
func NewTotal(table *Table, from Snapshot) *Total {
	return &Total{table: table, from: from, before: from.Before, after: from.Before, touched: map[string]bool{}}
}

// Next is what the next change starts from, with a copy of the item of its own.
func (s *Total) Next() (start Snapshot, err error) {
	start.Raw = s.from.Raw
	switch {
	case s.changed:
		start.Raw, start.Base = s.raw, s.from.base()
		start.Item, err = s.table.Decode(s.raw)
	case s.table.Core.Hidden(s.from.Raw):
		start.Item, err = NewItem(s.table, s.from.Before) // the key
	default:
		start.Item, err = s.table.Decode(s.from.Raw)
	}
	if err != nil {
		return start, err
	}
	if s.before == nil {
		// Not the encoding that the change left: what cannot be decoded without a
		// loss must not look like the next change's doing.
		if s.before, err = s.table.Encode(start.Item); err != nil {
			return start, err
		}
	}
	start.Before = s.before
	return start, nil
}

// Add takes in what a change did, that left the item's encoding after and its version.
func (s *Total) Add(diff ddb.Diff, after ddb.Item, version int64) {
	core := s.table.Core
	base := s.from.Raw
	if s.changed {
		base = s.raw
	}
	if len(base) == 0 {
		base = s.from.Before
	}
	for _, a := range diff.Set {
		s.touched[a.Name] = true
	}
	for _, name := range diff.Remove {
		s.touched[name] = true
	}
	s.raw = ApplyTo(core, base, diff, nil, 1)
	if core.Version != "" {
		s.raw[core.Version] = ddb.Integer(version)
	}
	s.changed, s.before, s.after = true, nil, after
}

// Edit is what all changes did together. What one set and another set back is
// written all the same: the item that it is compared with may be a tombstone.
func (s *Total) Edit() Edit {
	e := Edit{Item: s.from.Item, After: s.after}
	once := s.table.Core.Attr.OnceNames()
	names := slices.Concat(s.table.Core.Mapped, once[:])
	for _, name := range slices.Sorted(maps.Keys(s.touched)) { // what a tombstone has kept may be unknown to the type
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		v, there := s.raw[name]
		switch {
		case s.touched[name] && there:
			e.Diff.Set = append(e.Diff.Set, ddb.Attribute{Name: name, Value: v})
		case s.touched[name]:
			e.Diff.Remove = append(e.Diff.Remove, name)
		}
	}
	return e
}
