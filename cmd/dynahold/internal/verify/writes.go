package verify

import (
	"bytes"
	"fmt"
)

// mostChanges is how many changes one write can carry (Combine).
const mostChanges = 256

// wrote reports whether the change has the id of a write.
func (s *step) wrote() bool {
	for _, id := range s.ids {
		if !mark(id) {
			return true
		}
	}
	return false
}

// follows reports whether the item keeps evidence of writes: without it nothing can be
// said of its data.
func (s *step) follows() bool {
	return len(s.table.Ring(s.Before))+len(s.table.Ring(s.After)) > 0 || s.Before[s.table.Unread] != nil
}

// version: it grows with every write, by as many changes as one write can carry, and with
// nothing else.
func (s *step) version() string {
	switch moved := s.now - s.old; {
	case !s.counted || !s.follows():
		return ""
	case moved < 0:
		return fmt.Sprintf("the version fell from %d to %d", s.old, s.now)
	case moved == 0 && s.wrote():
		return fmt.Sprintf("a write left the version at %d", s.now)
	case moved > mostChanges:
		return fmt.Sprintf("the version went from %d to %d in one write, which carries %d changes at most", s.old, s.now, mostChanges)
	}
	return ""
}

// writers: each write leaves an id of its own, in front of those that stand there, once.
func (s *step) writers() string {
	writes := 0
	for _, id := range s.ids {
		if mark(id) {
			continue
		}
		if writes++; s.seen[string(id)] {
			return fmt.Sprintf("the write %x was applied twice", id)
		}
	}
	if writes > 1 {
		return fmt.Sprintf("one change has the ids of %d writes", writes)
	}
	rest := s.table.Ring(s.Before)
	for id := range each(s.table.Ring(s.After)) {
		if !has(s.table.Ring(s.Before), id) {
			continue
		}
		i := bytes.Index(rest, id)
		if i < 0 {
			return fmt.Sprintf("the ids of the writes before %x stand in another order", id)
		}
		rest = rest[i:]
	}
	return ""
}

// right: data is changed by a write of the library, and none ends the hold of somebody else
// before its lease is over. Whether a write under a hold was its holder's, the images do
// not tell: a writer that waited in the queue keeps its hold until its next request.
func (s *step) right() string {
	if !s.follows() || len(s.Before) == 0 {
		return ""
	}
	if len(s.After) == 0 || !s.data && !s.counting() {
		return "" // nothing in the images says who has deleted an item
	}
	switch byHand := s.was.Busy() && s.was.ByHand(); {
	case len(s.ids) == 0 && byHand && s.is.By != s.was.By:
		return "" // a commit by the article's pattern
	case len(s.ids) == 0 && s.cfg.Foreign:
		s.foreign = true
		return ""
	case len(s.ids) == 0:
		return "it was changed by a writer that does not follow the protocol: it left no id"
	case s.live() && !s.was.Endless() && s.forced():
		return fmt.Sprintf("a writer broke the hold of %s, token %d, until %s, and changed it", s.was.Owner(), s.was.Held, s.was.Until.UTC().Format(stamp))
	}
	return ""
}

// counting reports whether the version has moved.
func (s *step) counting() bool { return s.counted && s.old != s.now }
