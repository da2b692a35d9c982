package resources

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Every permit and every start of a job demands that the token of its resource is
// less than any that it would be given: less than MaxToken. So a resource is paused by
// adding MaxToken to its token, which no condition lets pass, and goes on when that is
// taken off again: what was given out before stays smaller than all that comes.

// Pause stops a resource: no permit of it is given out, no job is started or taken over,
// until Resume. Programs of a version that does not know pauses leave such a resource
// alone, with ErrSchema. One request.
func (t *Table) Pause(ctx context.Context, resource string) error {
	now := t.Clock()
	return t.setPaused(ctx, resource, true, func(w *ddb.Write) {
		t.register(w)
		token, most := w.Name(aToken), w.Value(ddb.Integer(MaxToken))
		w.SetTo(aToken, "if_not_exists("+token+", "+w.Value(ddb.Integer(now.UnixMicro()))+") + "+most)
		w.Set(aPaused, ddb.Number(ddb.Seconds(now)))
		w.If("(attribute_not_exists(" + token + ") OR " + token + " BETWEEN " + w.Value(ddb.Integer(0)) + " AND " + w.Value(ddb.Integer(MaxToken-1)) + ")")
	})
}

// Resume lets a paused resource go on; one that is not paused stays as it is. One
// request.
func (t *Table) Resume(ctx context.Context, resource string) error {
	return t.setPaused(ctx, resource, false, func(w *ddb.Write) {
		token, most := w.Name(aToken), w.Value(ddb.Integer(MaxToken))
		w.SetTo(aToken, token+" - "+most)
		w.Remove(aPaused)
		w.If(token + " > " + most)
	})
}

// setPaused sends a write that pauses a resource or lets it go on. Where its condition
// fails the resource is so already, if not somebody else has changed it back since.
func (t *Table) setPaused(ctx context.Context, resource string, paused bool, set func(*ddb.Write)) error {
	if err := t.CheckName(resource); err != nil {
		return err
	}
	return t.operate(ctx, resource, updates, set,
		func(r Row) bool { return paused != r.Paused.IsZero() },
		func(r Row, res ddb.Result) error {
			if res.Clean {
				return fmt.Errorf("%w: resource %q: its token, %d, is none that a resource comes to", repo.ErrSchema, resource, r.Token)
			}
			return Unknown(resource, nil)
		})
}

// tokenOf reads the token of a resource, and since when it is paused. The mark alone
// pauses nothing.
func tokenOf(row ddb.Item) (token int64, paused time.Time, err error) {
	since, marked := row[aPaused]
	if !marked {
		token, err = Integer(row, aToken, MaxToken)
		return token, paused, err
	}
	if token, err = Integer(row, aToken, MaxToken+(MaxToken-1)); err != nil || token <= MaxToken {
		return token, paused, err
	}
	if paused, err = ddb.Time(since); err != nil {
		return 0, paused, fmt.Errorf("attribute %q: %w", aPaused, err)
	}
	return token - MaxToken, paused, nil
}
