package transaction

import (
	"fmt"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// reasons are why single items cancelled a transaction; nil: none of them did.
func (m *commit) reasons(err error) error {
	return fail(m.blamed(ddb.Reasons(err), refusal)...)
}

// refusal is the error of an item because of which the service refused a transaction.
func refusal(core *stored.Table, key repo.Key, reason error) error {
	return core.Classify(fmt.Errorf("%s: %w", core.ItemName(key), reason))
}

// exhausted says that others were at the items, each time, or that the last request was
// one too many for the service, where nobody else needs to have been.
func (m *commit) exhausted(res ddb.Result) error {
	conflict := func(core *stored.Table, key repo.Key, reason error) error {
		if ddb.Throttled(reason) && !ddb.Conflicted(reason) {
			return refusal(core, key, reason)
		}
		return &repo.ConflictError{Table: core.Name, Key: key, Attempts: m.call.tried()}
	}
	at := m.blamed(reasons(res), conflict)
	if at == nil {
		at = m.all(res.Err, conflict)
	}
	return because(fail(at...), res.Err)
}

// blamed are the failures of the parts of the last request that have a reason.
func (m *commit) blamed(reasons []error, as func(core *stored.Table, key repo.Key, reason error) error) (failed []Failure) {
	n := len(m.parts)
	for i, reason := range reasons {
		switch {
		case reason == nil || i >= n+len(m.sent):
		case i < n:
			p := m.parts[i]
			failed = append(failed, p.failure(as(p.core.Table, p.key, reason)))
		default:
			r := m.sent[i-n]
			failed = append(failed, rowFailure(r, as(r.Table, r.Key, reason)))
		}
	}
	return failed
}

// all blames every part of the last request for one reason.
func (m *commit) all(reason error, as func(core *stored.Table, key repo.Key, reason error) error) []Failure {
	return m.blamed(slices.Repeat([]error{reason}, len(m.parts)+len(m.sent)), as)
}
