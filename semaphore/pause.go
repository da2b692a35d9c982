package semaphore

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Every permit and every start of a job demands that the token of its resource is
// less than any that it would be given: less than maxToken. So a resource is paused by
// adding maxToken to its token, which no condition lets pass, and goes on when that is
// taken off again: what was given out before stays smaller than all that comes.

// Pause stops a resource, for operators: no permit of it is given out, no job is
// started or taken over, until [Semaphore.Resume]. What is held or runs goes on and ends
// as ever, and jobs can be enqueued. Callers of Acquire wait; TryAcquire and Next fail
// with ErrBusy, and [BusyError] says since when it is paused. A resource that is
// paused stays so since then; one that nobody has used is registered. Programs of a
// version that does not know pauses leave such a resource alone, with ErrSchema. One
// request; where an answer was lost, or others were quicker, the row tells:
// ErrOutcomeUnknown if they have set it otherwise since.
func (s *store) Pause(ctx context.Context, resource string) error {
	now := s.clock()
	return s.setPaused(ctx, resource, true, func(w *ddb.Write) {
		register(w, s.cfg)
		token, most := w.Name(aToken), w.Value(ddb.Integer(maxToken))
		w.SetTo(aToken, "if_not_exists("+token+", "+w.Value(ddb.Integer(now.UnixMicro()))+") + "+most)
		w.Set(aPaused, ddb.Number(ddb.Seconds(now)))
		w.If("(attribute_not_exists(" + token + ") OR " + token + " BETWEEN " + w.Value(ddb.Integer(0)) + " AND " + w.Value(ddb.Integer(maxToken-1)) + ")")
	})
}

// Resume lets a paused resource go on; one that is not paused stays as it is.
// Dispatchers notice it with their next look for work, after Config.Poll at the latest.
// One request, and errors, as of Pause.
func (s *store) Resume(ctx context.Context, resource string) error {
	return s.setPaused(ctx, resource, false, func(w *ddb.Write) {
		token, most := w.Name(aToken), w.Value(ddb.Integer(maxToken))
		w.SetTo(aToken, token+" - "+most)
		w.Remove(aPaused)
		w.If(token + " > " + most)
	})
}

// setPaused sends a write that pauses a resource or lets it go on. Where its condition
// fails the resource is so already, if not somebody else has changed it back since.
func (s *store) setPaused(ctx context.Context, resource string, paused bool, set func(*ddb.Write)) error {
	if err := s.checkName(resource); err != nil {
		return err
	}
	return s.operate(ctx, resource, updates, set,
		func(r Resource) bool { return paused != r.Paused.IsZero() },
		func(r Resource, res ddb.Result) error {
			if res.Clean {
				return fmt.Errorf("%w: resource %q: its token, %d, is none that a resource comes to", repo.ErrSchema, resource, r.token)
			}
			return unknown(resource, nil)
		})
}

// tokenOf reads the token of a resource, and since when it is paused. The mark alone
// pauses nothing.
func tokenOf(row ddb.Item) (token int64, paused time.Time, err error) {
	since, marked := row[aPaused]
	if !marked {
		token, err = integer(row, aToken, maxToken)
		return token, paused, err
	}
	if token, err = integer(row, aToken, maxToken+(maxToken-1)); err != nil || token <= maxToken {
		return token, paused, err
	}
	if paused, err = ddb.Time(since); err != nil {
		return 0, paused, fmt.Errorf("attribute %q: %w", aPaused, err)
	}
	return token - maxToken, paused, nil
}
