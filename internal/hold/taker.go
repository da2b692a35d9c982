package hold

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/repo"
)

// Taker takes the locks of a table's items. It is safe for concurrent use.
type Taker struct {
	Core *ddb.Core
	Config
	Rivals *guard.Rivals // nil: nothing is remembered
	Turns  *Turns        // nil: nothing is remembered
}

// Break ends the hold of a token by force; ErrNotHeld if there is no such hold,
// and ErrNotFound beside it if there is no item. Two requests.
func (t *Taker) Break(ctx context.Context, key repo.Key, raw ddb.Item, token int64) error {
	image, err := t.Core.Get(ctx, raw)
	if err != nil {
		return repo.Classify(err)
	}
	seen, err := guard.ParseLock(t.Core, key, image)
	if err != nil {
		return err
	}
	if len(image) == 0 {
		return errors.Join(guard.NotFound(key, t.Core.Table), repo.ErrNotHeld)
	}
	if !seen.Busy() || seen.Held != token {
		return fmt.Errorf("%w: item %v, token %d", repo.ErrNotHeld, key, token)
	}
	in, err := t.Core.Break(raw, image)
	if err != nil {
		return repo.Classify(err)
	}
	res := t.Core.Update(ctx, in, ddb.Options{})
	switch res.Outcome {
	case ddb.Applied:
		return nil
	case ddb.Condition:
		now, err := guard.ParseLock(t.Core, key, res.Image)
		if err == nil && !res.Clean && token != 0 && now.Stolen == token {
			return nil // an earlier attempt broke it
		}
		return fmt.Errorf("%w: item %v, token %d: the hold ended or moved on meanwhile", repo.ErrNotHeld, key, token)
	}
	return guard.Failed(key, res)
}

// ReleaseByID releases the hold of an id, whatever its token; drop deletes the
// item with it. ErrNotHeld if nobody holds the item, ErrLocked if another does.
func (t *Taker) ReleaseByID(ctx context.Context, key repo.Key, raw ddb.Item, id string, drop bool) error {
	w := t.Core.NewWrite()
	w.IfEqual(t.Core.Attr.LockedBy, ddb.Text(id))
	var res ddb.Result
	if drop {
		res = t.Core.Delete(ctx, w.Delete(raw), ddb.Options{Holding: true, Absence: true})
	} else {
		w.Unlock()
		w.SetTo(t.Core.Attr.LockStolen, w.Name(t.Core.Attr.LockHeld)) // its handle, if there is one, must find out
		in, err := w.Update(raw)
		if err != nil {
			return repo.Classify(err)
		}
		res = t.Core.Update(ctx, in, ddb.Options{Holding: true, Absence: true})
	}
	switch res.Outcome {
	case ddb.Applied:
		return nil
	case ddb.Condition:
		turn := guard.Turn{Core: t.Core, Key: key}
		l, err := turn.Lock(res.Image)
		switch {
		case err != nil:
			return err
		case !res.Clean && !l.Busy():
			return nil // an earlier attempt released it
		case !res.Clean:
			return guard.UnknownOutcome(key, nil)
		case l.Busy():
			return guard.Locked(key, l)
		}
		return fmt.Errorf("%w: item %v", repo.ErrNotHeld, key)
	}
	return guard.Failed(key, res)
}

// free releases the hold of an id, if it is there, whatever its token. If it
// fails, the lock ends with its lease.
func (t *Taker) free(ctx context.Context, raw ddb.Item, id string) {
	w := t.Core.NewWrite()
	w.Unlock()
	w.IfEqual(t.Core.Attr.LockedBy, ddb.Text(id))
	if in, err := w.Update(raw); err == nil {
		t.Core.Update(ctx, in, ddb.Options{NoSettle: true, Holding: true})
	}
}
