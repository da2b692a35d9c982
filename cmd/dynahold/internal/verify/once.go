package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/history"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// longerRemember is by which part of itself at least an epoch falls where a program with a longer
// Remember counts ids anew: it does so where the mark is ten years off (internal/stored), of
// those since 1970, and ten of 120 are a twelfth. So it holds until 2080.
const longerRemember = 12

// once: an operation's id is added once while it is remembered, and is forgotten with its
// epoch alone, or goes to a row beside the item.
func (s *step) once() string {
	if len(s.Before) == 0 || len(s.After) == 0 {
		return ""
	}
	names := s.table.Once
	from, to := s.table.MarkOf(s.Before), s.table.MarkOf(s.After)
	was, is, stay := from.Epoch, to.Epoch, from.Epoch == to.Epoch && from.Moves == to.Moves
	before, past := entries(s.Before[names[0]]), entries(s.Before[names[1]])
	after, stays := entries(s.After[names[0]]), entries(s.After[names[1]])
	if was-is > was/longerRemember {
		clear(s.added)
		return ""
	}
	if is < was {
		return fmt.Sprintf("the epoch of its operations' ids fell from %d to %d", was, is)
	}
	for id := range before {
		if stay && !after[id] {
			return fmt.Sprintf("it forgot the operation %x within its epoch", id)
		}
	}
	for id := range past {
		if stay && !stays[id] {
			return fmt.Sprintf("it forgot the operation %x of the epoch before", id)
		}
	}
	for id := range after {
		if before[id] {
			continue
		}
		if at, known := s.added[id]; past[id] && was == is || known && is-at <= 1 {
			return fmt.Sprintf("the operation %x was applied twice", id)
		}
	}
	return ""
}

// remember notes the ids of operations that stand there since this change.
func (s *step) remember() {
	is := s.table.MarkOf(s.After).Epoch
	before := entries(s.Before[s.table.Once[0]])
	for id := range entries(s.After[s.table.Once[0]]) {
		if _, known := s.added[id]; !known || !before[id] {
			s.added[id] = is
		}
	}
	for id, at := range s.added {
		if is-at > 1 {
			delete(s.added, id)
		}
	}
}

func entries(v types.AttributeValue) map[string]bool {
	set, _ := v.(*types.AttributeValueMemberBS)
	if set == nil {
		return nil
	}
	all := make(map[string]bool, len(set.Value))
	for _, id := range set.Value {
		all[string(id)] = true
	}
	return all
}

// moved: an id that left an item for a row beside it is in that row.
func (h *histories) moved(table *stored.Table) {
	for _, key := range slices.Sorted(maps.Keys(h.changes)) {
		added := map[string]bool{} // ids whose beginning was seen: the row is younger
		for _, c := range h.changes[key] {
			if len(c.Before) == 0 || !h.known(key) {
				clear(added)
			}
			from, to := table.MarkOf(c.Before), table.MarkOf(c.After)
			if to.Rows != "" && to.Moves > from.Moves && len(c.Before) > 0 {
				h.inRows(table, c, added)
			}
			for id := range entries(c.After[table.Once[0]]) {
				added[id] = true
			}
		}
	}
}

// inRows looks for the ids that a change has taken from an item.
func (h *histories) inRows(table *stored.Table, c Change, added map[string]bool) {
	stays := map[string]bool{}
	maps.Copy(stays, entries(c.After[table.Once[0]]))
	maps.Copy(stays, entries(c.After[table.Once[1]]))
	for _, id := range slices.Sorted(maps.Keys(entries(c.Before[table.Once[0]]))) {
		if stays[id] || !added[id] {
			continue
		}
		row := history.KeyHash(table.OnceRow(c.After, table.MarkOf(c.After), []byte(id)))
		has := func(i ddb.Item) bool { return entries(i[table.Once[0]])[id] }
		if len(h.changes[row]) == 0 || h.known(row) && !slices.ContainsFunc(h.changes[row].near(c.Time), has) {
			h.tell(RuleOnce, fmt.Sprintf("the operation %x went from it, and not to a row beside it", id), c)
			return
		}
	}
}
