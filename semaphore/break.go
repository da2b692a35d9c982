package semaphore

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// BreakPermit ends a permit by force, for operators: id is that of [Semaphore.Permits].
// ErrNotHeld if no permit has it. Two requests, one more each time that the holder
// renews it between them.
//
// The holder learns it from its next renewal, within a third of its lease, or from
// Release, as ErrLockLost. Until then another may have a permit beside it, with a greater
// token. If an answer was lost, or others were quicker, the row tells whether the permit was
// ended by force, by this call or another's; ErrOutcomeUnknown if the resource is gone.
// With the context of the permit itself it is ErrNested.
func (s *Semaphore) BreakPermit(ctx context.Context, resource, id string) error {
	r, err := s.readToBreak(ctx, resource, id)
	if err != nil {
		return err
	}
	attr, clean, sent := resources.PermitPrefix+id, true, false
	for {
		held, there := r.Permits[attr]
		switch {
		case there:
		case sent && r.WasBroken(id):
			return nil // also by a copy of the request that the network made
		case !clean && r.Token == 0:
			return resources.Unknown(resource, nil)
		default:
			return fmt.Errorf("%w: resource %q has no permit %q", repo.ErrNotHeld, resource, id)
		}
		w := s.table.Core.NewWrite()
		w.Remove(attr)
		if held.Owner != nil {
			w.Remove(resources.OwnerAttr(attr))
		}
		s.table.GiveBack(w)
		s.table.LeaveEvidence(w, r, id, held.End)
		w.IfEqual(attr, held.End)
		res := s.table.Write(ctx, resource, w, ddb.Options{Absence: true, Stands: func(row ddb.Item) bool { return row[attr] != nil }})
		clean, sent = clean && res.Clean, true
		switch res.Outcome {
		case ddb.Applied:
			s.table.Core.Observe.Broken(ctx, telemetry.Permit, telemetry.Operator, slog.String("resource", resource), slog.String("permit", id))
			return nil
		case ddb.Refused, ddb.Unknown:
			return resources.Plain(resource, res)
		}
		if r, err = s.table.Parse(resource, res.Image); err != nil && !clean {
			return resources.Unknown(resource, err)
		}
		if err != nil {
			return err
		}
	}
}

// readToBreak reads a resource whose permit is to be ended, unless the call is made under it.
func (s *Semaphore) readToBreak(ctx context.Context, resource, id string) (resources.Row, error) {
	if err := nesting.Break(ctx, s.item(resource), repo.Key{Partition: resource}, id); err != nil {
		return resources.Row{}, err
	}
	return s.read(ctx, resource)
}
