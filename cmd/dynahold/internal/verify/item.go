package verify

import (
	"bytes"
	"maps"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// item is what is known of an item before the next change.
type item struct {
	last    map[string]types.AttributeValue // as the change before left it
	known   bool                            // last is
	seen    map[string]bool                 // ids of writes since the item was made
	locked  time.Time                       // when the lock's attributes last changed; zero: not seen
	held    int64                           // the greatest token of a hold
	added   map[string]int64                // ids of operations, and the epoch in which each was added
	served  map[string]int64                // the last number of delegated commands, by sender
	breach  bool
	touched map[string]bool // ids of writes that were seen, over all lives of the item
	whole   bool            // no change is missing
	from    time.Time       // of the first change
	name    string
}

func newItem(first Change) *item {
	return &item{from: first.Time, name: first.Name, whole: true, seen: map[string]bool{}, added: map[string]int64{}, touched: map[string]bool{}, served: map[string]int64{}}
}

// begin forgets what belongs to the item's life before: it is made anew.
func (i *item) begin() {
	i.seen, i.added, i.held, i.locked = map[string]bool{}, map[string]int64{}, 0, time.Time{}
	i.served = map[string]int64{}
}

// read looks at the two images.
func (s *step) read() error {
	var err error
	if s.was, err = s.table.ParseRecord(s.Before); err != nil {
		return err
	}
	if s.is, err = s.table.ParseRecord(s.After); err != nil {
		return err
	}
	s.ids = append(newIDs(s.table.Ring(s.Before), s.table.Ring(s.After)), newIDs(unread(s.table, s.Before), unread(s.table, s.After))...)
	s.data = s.changed(s.isData)
	s.old, s.now, s.counted = 0, 0, false
	v, there := s.Before[s.cfg.Version]
	w, stays := s.After[s.cfg.Version]
	if there && stays {
		a, errOld := ddb.Int(v)
		b, errNow := ddb.Int(w)
		if errOld == nil && errNow == nil {
			s.old, s.now, s.counted = a, b, true
		}
	}
	return nil
}

// isData reports whether an attribute is the user's.
func (s *step) isData(name string) bool {
	return name != s.cfg.Version && name != s.table.Attr.TTL && !s.table.Reserved(name)
}

// changed reports whether one of some attributes differs in both images.
func (s *step) changed(which func(string) bool) bool {
	if len(s.Before) == 0 || len(s.After) == 0 {
		return false
	}
	all := maps.Clone(s.Before)
	maps.Copy(all, s.After)
	for name := range all {
		if which(name) && !reflect.DeepEqual(s.Before[name], s.After[name]) {
			return true
		}
	}
	return false
}

// same reports whether two images are of one moment.
func same(a, b map[string]types.AttributeValue) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

// isLock reports whether an attribute says who holds the item until when.
func (s *step) isLock(name string) bool {
	a := &s.table.Attr
	return name == a.LockedBy || name == a.LockTime || name == a.LockHeld || name == a.LockLease
}

// unread is the id of the last write that had not read the item; nil without one.
func unread(t *stored.Table, image map[string]types.AttributeValue) []byte {
	if image[t.Unread] == nil {
		return nil
	}
	return t.LastUnread(image)
}

// newIDs are the ids of a list that were not in the one before.
func newIDs(before, after []byte) (ids [][]byte) {
	for id := range each(after) {
		if !has(before, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func each(ring []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for ; len(ring) >= stored.RingID; ring = ring[stored.RingID:] {
			if !yield(ring[:stored.RingID]) {
				return
			}
		}
	}
}

func has(ring, id []byte) bool {
	for one := range each(ring) {
		if bytes.Equal(one, id) {
			return true
		}
	}
	return false
}

// mark reports whether an id is no write's, but was left to keep a copy out.
func mark(id []byte) bool { return id[stored.RingID-2] == 0 && id[stored.RingID-1] == 0 }
