package resources

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Whoever ends something finds it gone, and may have had no answer to an earlier
// attempt. Before its deadline it could take itself for the cause, for nobody else ends
// what is not over, but an operator. So that leaves evidence on the resource: the name of
// what was ended by force, with the end that it had.

// keepBroken is how long evidence is kept after that end: longer than any clock is off.
const keepBroken = 24 * time.Hour

// LeaveEvidence adds to a write of a resource that something was ended by force, and
// removes evidence that nobody needs any more.
func (t *Table) LeaveEvidence(w *ddb.Write, r Row, name string, end types.AttributeValue) {
	w.Set(brokenPrefix+name, end)
	var old []string
	for attr, end := range r.broken {
		if end.Add(keepBroken).Before(t.Clock()) && attr != brokenPrefix+name {
			old = append(old, attr)
		}
	}
	slices.Sort(old)
	w.Remove(old[:min(len(old), maxRemoved)]...)
}

// noteBroken reads such evidence. What cannot be read is none.
func (r *Row) noteBroken(attr string, v types.AttributeValue) {
	end, err := ddb.Time(v)
	if err != nil {
		return
	}
	if r.broken == nil {
		r.broken = map[string]time.Time{}
	}
	r.broken[attr] = end
}

// WasBroken reports whether a permit, by its id, or a job, by its token, was ended by
// force.
func (r Row) WasBroken(name string) bool {
	_, broken := r.broken[brokenPrefix+name]
	return broken
}

// Broken is WasBroken of a resource's row.
func Broken(row ddb.Item, name string) bool { return row[brokenPrefix+name] != nil }
