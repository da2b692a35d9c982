package semaphore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Whoever ends something finds it gone, and may have had no answer to an earlier
// attempt. Before its deadline it could take itself for the cause, for nobody else ends
// what is not over, but an operator. So that leaves evidence on the resource: the name of
// what was ended by force, with the end that it had.

// keepBroken is how long evidence is kept after that end: longer than any clock is off.
const keepBroken = 24 * time.Hour

// BreakPermit ends a permit by force, for operators: id is that of [Semaphore.Permits].
// ErrNotHeld if no permit has it. Two requests, one more each time that the holder
// renews it between them.
//
// The holder learns it from its next renewal, within a third of its lease, or from
// Release, as ErrLockLost. Until then another may have a permit beside it, with a greater
// token. If an answer was lost, or others were quicker, the row tells whether the permit was
// ended by force, by this call or another's; ErrOutcomeUnknown if the resource is gone.
func (s *store) BreakPermit(ctx context.Context, resource, id string) error {
	r, err := s.Resource(ctx, resource)
	if err != nil {
		return err
	}
	attr, clean, sent := permitPrefix+id, true, false
	for {
		end, there := r.permits[attr]
		switch {
		case there:
		case sent && r.wasBroken(id):
			return nil // also by a copy of the request that the network made
		case !clean && r.token == 0:
			return unknown(resource, nil)
		default:
			return fmt.Errorf("%w: resource %q has no permit %q", repo.ErrNotHeld, resource, id)
		}
		w := s.core.NewWrite()
		w.Remove(attr)
		if end.owner != nil {
			w.Remove(ownerAttr(attr))
		}
		count(w, aRunning, -1)
		count(w, aChanges, 1)
		s.leaveEvidence(w, r, id, end.raw)
		w.IfEqual(attr, end.raw)
		res := s.write(ctx, resource, w, ddb.Options{Absence: true})
		clean, sent = clean && res.Clean, true
		switch res.Outcome {
		case ddb.Applied:
			s.core.Observe.Broken(ctx, telemetry.Permit, telemetry.Operator, slog.String("resource", resource), slog.String("permit", id))
			return nil
		case ddb.Refused, ddb.Unknown:
			return s.plain(resource, res)
		}
		if r, err = parseResource(resource, res.Image, s.cfg); err != nil && !clean {
			return unknown(resource, err)
		}
		if err != nil {
			return err
		}
	}
}

// BreakJob takes a running job from its handler by force, for operators, and gives it
// back to its place in line, the attempt counted: it is started again as soon as
// there is room ([Semaphore.Pause] keeps it where it is, [Semaphore.Cancel] removes it).
// id and token are those of [Semaphore.Jobs]. ErrNotHeld if the job does not run under
// this token, ErrNotFound if it is not in line. Three requests, as of Cancel, and a read
// of the resource.
//
// The handler learns it from its next renewal, within a third of its lease, or when it
// ends the job, as ErrLockLost. Until then another may work on the job beside it, under
// a greater token. If an answer was lost, the resource tells whether the job was
// broken, by this call or another's.
func (s *store) BreakJob(ctx context.Context, resource, id string, token int64) error {
	missing := fmt.Errorf("%w: job %q of resource %q does not run under the token %d", repo.ErrNotHeld, id, resource, token)
	j, err := s.findJob(ctx, resource, id)
	switch {
	case err != nil:
		return err
	case j.state != running || j.token != token || token == 0:
		return missing
	}
	r, err := s.readResource(ctx, resource)
	if err != nil {
		return err
	}
	w := s.core.NewWrite()
	w.Set(aState, ddb.Text(queued))
	w.Remove(aUntil, aOwner, aNotBefore)
	w.IfEqual(aState, ddb.Text(running))
	w.IfEqual(aToken, ddb.Integer(token))
	name := strconv.FormatInt(token, 10)
	c := change{running: -1, queued: 1, size: j.size, writes: []types.TransactWriteItem{ddb.UpdateOf(update(w, j.key()))},
		more: func(w *ddb.Write) { s.leaveEvidence(w, r, name, j.row[aUntil]) }}
	res := s.submitFor(ctx, resource, c)
	if res.Outcome == ddb.Condition {
		r, err = s.readResource(ctx, resource)
		switch {
		case err == nil && r.wasBroken(name):
			res.Outcome = ddb.Applied
		case res.Clean || err == nil && r.token != 0:
			return missing
		default:
			return unknown(resource, err)
		}
	}
	if err := s.plain(resource, res); err != nil {
		return err
	}
	s.core.Observe.Broken(ctx, telemetry.Job, telemetry.Operator, slog.String("resource", resource), slog.String("job", id), slog.Int64("lost", token))
	s.wake(resource)
	return nil
}

// leaveEvidence adds to a write of a resource that something was ended by force, and
// removes evidence that nobody needs any more.
func (s *store) leaveEvidence(w *ddb.Write, r Resource, name string, end types.AttributeValue) {
	w.Set(brokenPrefix+name, end)
	var old []string
	for attr, end := range r.broken {
		if end.Add(keepBroken).Before(s.clock()) && attr != brokenPrefix+name {
			old = append(old, attr)
		}
	}
	slices.Sort(old)
	w.Remove(old[:min(len(old), maxSweep)]...)
}

// noteBroken reads such evidence. What cannot be read is none.
func (r *Resource) noteBroken(attr string, v types.AttributeValue) {
	end, err := ddb.Time(v)
	if err != nil {
		return
	}
	if r.broken == nil {
		r.broken = map[string]time.Time{}
	}
	r.broken[attr] = end
}

// wasBroken reports whether a permit, by its id, or a job, by its token, was ended by
// force.
func (r Resource) wasBroken(name string) bool {
	_, broken := r.broken[brokenPrefix+name]
	return broken
}

// brokenFrom is wasBroken of a resource's row.
func brokenFrom(row ddb.Item, name string) bool { return row[brokenPrefix+name] != nil }

// broken reports whether a job whose row is not this handler's any more was taken from
// it by force. One read, in this rare case only. known is false where nobody can tell.
func (j *job) broken(ctx context.Context) (broken, known bool) {
	r, err := j.s.readResource(ctx, j.resource)
	if err != nil || r.token == 0 {
		return false, false
	}
	return r.wasBroken(strconv.FormatInt(j.token, 10)), true
}
