package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynahold/dynahold/internal/delegation"
)

// commands: those of one sender are carried out once, in their order, by a write.
func (s *step) commands() string {
	was, errWas := delegation.Of(s.table, s.Before)
	is, errIs := delegation.Of(s.table, s.After)
	if errWas != nil || errIs != nil || is.Life == "" {
		return "" // it says nothing, or what nobody can read
	}
	if is.Life != was.Life {
		s.served = map[string]int64{}
		if was.Life != "" {
			return "the life that its commands are told by is another, and it was not made anew"
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(is.Slots)) {
		seq := is.Slots[slot].Seq
		before, stood := was.Slots[slot]
		last := max(s.served[slot], before.Seq)
		switch {
		case stood && before.Seq == seq:
		case seq <= last:
			return fmt.Sprintf("the commands number %d of sender %s were carried out behind those number %d", seq, slot, last)
		case !s.wrote():
			return fmt.Sprintf("the commands number %d of sender %s were answered, and nothing was written", seq, slot)
		}
		s.served[slot] = max(last, seq)
	}
	return ""
}
