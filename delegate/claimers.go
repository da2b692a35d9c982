package delegate

import (
	"errors"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// claimers tell which commands of a leader's round take values that no other item may have.
// That another one has such a value is found when the round is written: one command would
// make it fail for those of all senders, again and again.
type claimers struct {
	n       int            // commands so far
	last    map[string]int // by what is unique: the last command that changes it
	refused map[int]error  // whose values are others'
}

// begin begins with the first command of the round.
func (t *claimers) begin() { t.n, t.last = 0, map[string]int{} }

// next notes what the next command changes, or says that it is refused.
func (t *claimers) next(core *protocol.Core, edit typed.Edit) error {
	t.n++
	if err := t.refused[t.n]; err != nil {
		return err
	}
	for _, u := range core.Unique.All {
		if slices.ContainsFunc(edit.Diff.Set, func(a ddb.Attribute) bool { return slices.Contains(u.Attributes, a.Name) }) {
			t.last[u.Name] = t.n
		}
	}
	return nil
}

// refuse notes whose command has made the round fail, which nothing was written of; false:
// no command's.
func (t *claimers) refuse(err error) bool {
	var e *repo.NotUniqueError
	if errors.Is(err, repo.ErrOutcomeUnknown) || !errors.As(err, &e) || t.last[e.Field] == 0 {
		return false
	}
	if t.refused == nil {
		t.refused = map[int]error{}
	}
	t.refused[t.last[e.Field]] = e
	return true
}
