package verify

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// once: an operation's id is added once while it is remembered, and is forgotten with its
// epoch alone.
func (s *step) once() string {
	if len(s.Before) == 0 || len(s.After) == 0 {
		return ""
	}
	names := s.table.Once
	was, is := epoch(s.Before[names[2]]), epoch(s.After[names[2]])
	before, past := entries(s.Before[names[0]]), entries(s.Before[names[1]])
	after, stays := entries(s.After[names[0]]), entries(s.After[names[1]])
	if is < was {
		return fmt.Sprintf("the epoch of its operations' ids fell from %d to %d", was, is)
	}
	for id := range before {
		if was == is && !after[id] {
			return fmt.Sprintf("it forgot the operation %x within its epoch", id)
		}
	}
	for id := range past {
		if was == is && !stays[id] {
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
	is := epoch(s.After[s.table.Once[2]])
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

func epoch(v types.AttributeValue) int64 {
	n, err := ddb.Int(v)
	if v == nil || err != nil {
		return 0
	}
	return n
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
