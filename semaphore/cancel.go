package semaphore

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Cancel removes a job that waits, also one that has failed and is to be tried again.
// ErrNotFound if no job in line has this id; ErrLocked, with *repo.LockedError, if it
// runs: see [Semaphore.BreakJob]. A dead letter is removed by Discard. An id of the
// caller's own is remembered for 24 hours, as after Done.
//
// Two requests; a job that has failed stands elsewhere in the line than its id says: one
// more for each megabyte before it. ErrOutcomeUnknown where an answer was lost and the
// job is gone: it may have been started, and done, before.
func (s *store) Cancel(ctx context.Context, resource, id string) error {
	for range starts {
		j, err := s.findJob(ctx, resource, id)
		if err != nil {
			return err
		}
		if j.state == running {
			return fmt.Errorf("job %q of resource %q runs: %w", id, resource, &repo.LockedError{Table: s.core.Name, Key: keyOf(j.row),
				Owner: protocol.Record{By: j.owner}.Owner(), Until: j.until, Token: j.token})
		}
		w := s.core.NewWrite()
		j.asRead(w)
		c := change{queued: -1, size: j.size, writes: []types.TransactWriteItem{ddb.DeleteOf(w.Delete(j.key()))}}
		s.unmark(&c, resource, j)
		res := s.submitFor(ctx, resource, c)
		// A row that is there no attempt has removed: it has changed since it was read.
		if res.Outcome != ddb.Condition || !res.Clean && (!res.Images[0].Failed || len(res.Images[0].Item) == 0) {
			return s.plain(resource, res)
		}
	}
	return fmt.Errorf("%w: job %q of resource %q is started and given back all the time", repo.ErrConflict, id, resource)
}
