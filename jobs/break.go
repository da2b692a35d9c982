package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// BreakJob takes a running job from its handler by force, for operators, and gives it
// back to its place in line, the attempt counted: it is started again as soon as
// there is room ([Queue.Pause] keeps it where it is, [Queue.Cancel] removes it).
// id and token are those of [Queue.Jobs]. ErrNotHeld if the job does not run under
// this token, ErrNotFound if it is not in line. Three requests, as of Cancel, and a read
// of the resource.
//
// The handler learns it from its next renewal, within a third of its lease, or when it
// ends the job, as ErrLockLost. Until then another may work on the job beside it, under
// a greater token. If an answer was lost, the resource tells whether the job was
// broken, by this call or another's. With the context of the job itself it is ErrNested.
func (q calls) BreakJob(ctx context.Context, resource, id string, token int64) error {
	missing := fmt.Errorf("%w: job %q of resource %q does not run under the token %d", repo.ErrNotHeld, id, resource, token)
	j, err := q.s.findToBreak(ctx, resource, id, token)
	switch {
	case err != nil:
		return err
	case j.state != running || j.token != token || token == 0:
		return missing
	}
	r, err := q.s.table.Read(ctx, resource)
	if err != nil {
		return err
	}
	w := q.s.table.Core.NewWrite()
	w.Set(aState, ddb.Text(queued))
	w.Remove(aUntil, aOwner, aNotBefore)
	w.IfEqual(aState, ddb.Text(running))
	w.IfEqual(aToken, ddb.Integer(token))
	name := strconv.FormatInt(token, 10)
	c := change{counts: resources.Counts{Running: -1, Queued: 1}, size: j.size, writes: []types.TransactWriteItem{ddb.UpdateOf(resources.Update(w, j.key()))},
		more: func(w *ddb.Write) { q.s.table.LeaveEvidence(w, r, name, j.row[aUntil]) }}
	res := q.s.submitFor(ctx, resource, c, j.key(), func(row ddb.Item) bool {
		return resources.Text(row, aState) == running && ddb.Equal(row[aToken], ddb.Integer(token))
	})
	if res.Outcome == ddb.Condition {
		look, cancel := ddb.WithGrace(ctx, ddb.Settle)
		defer cancel()
		r, err = q.s.table.Read(look, resource)
		switch {
		case err == nil && r.WasBroken(name):
			res.Outcome = ddb.Applied
		case res.Clean || err == nil && r.Token != 0:
			return missing
		default:
			return resources.Unknown(resource, err)
		}
	}
	if err := resources.Plain(resource, res); err != nil {
		return err
	}
	q.s.table.Core.Observe.Broken(ctx, telemetry.Job, telemetry.Operator, slog.String("resource", resource), slog.String("job", id), slog.Int64("lost", token))
	q.s.wake(resource)
	return nil
}

// findToBreak finds the job that a call is to take from its handler, where it may be made.
func (s *store) findToBreak(ctx context.Context, resource, id string, token int64) (j jobRow, err error) {
	if err = nesting.Effect(ctx, "jobs.BreakJob", afterwards); err != nil {
		return j, err
	}
	if j, err = s.findJob(ctx, resource, id); err != nil {
		return j, err
	}
	return j, nesting.Break(ctx, nesting.ItemOf(s.table.Core, j.key()), repo.Key{Partition: resource, Sort: id}, strconv.FormatInt(token, 10))
}
