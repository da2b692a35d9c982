package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Break ends the hold of a token by force; 0 is a hold that was taken by hand.
// ErrNotHeld if there is no such hold, and ErrNotFound beside it if there is no
// item. Two requests, one more each time that the hold was extended between
// them.
func (t *Locker) Break(ctx context.Context, key repo.Key, raw ddb.Item, token int64) error {
	image, err := t.Core.Get(ctx, raw)
	if err != nil {
		return err
	}
	if len(image) == 0 {
		return errors.Join(NotFound(key, t.Core.Name), repo.ErrNotHeld)
	}
	for {
		seen, err := ParseRecord(t.Core, key, image)
		if err != nil {
			return err
		}
		if !seen.Busy() || seen.Held != token {
			return fmt.Errorf("%w: %s, token %d", repo.ErrNotHeld, t.Core.ItemName(key), token)
		}
		image, err = t.breakSeen(ctx, key, raw, image, seen)
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

// breakSeen ends the hold that an image shows. With errAgain it returns the
// image of the hold as it is now: nothing was written.
func (t *Locker) breakSeen(ctx context.Context, key repo.Key, raw, image ddb.Item, seen stored.Record) (ddb.Item, error) {
	mark := protocol.NewMark()
	in, err := t.Core.BreakMarked(raw, image, mark)
	if err != nil {
		return nil, err
	}
	res := t.Core.Update(ctx, in, ddb.Options{Stands: func(now ddb.Item) bool { return t.goesOn(now, image, seen, mark) }})
	switch res.Outcome {
	case ddb.Applied:
		t.broken(ctx, key, seen)
		return nil, nil
	case ddb.Condition:
	default:
		return nil, Failed(t.Core, key, res)
	}
	now, err := ParseRecord(t.Core, key, res.Image)
	if err != nil && !res.Clean {
		return nil, UnknownOutcome(t.Core.Table, key, err)
	}
	if err != nil {
		return nil, err
	}
	marked := protocol.RingVerdict(mark, t.Core.Ring(image), t.Core.Ring(res.Image))
	switch protocol.JudgeBreak(now, seen, marked, !t.Core.Absent(res.Image), res.Clean) {
	case protocol.Committed:
		t.broken(ctx, key, seen)
		return nil, nil
	case protocol.Lost:
		if now.By == seen.By && now.Held == seen.Held && now.Busy() {
			return res.Image, errAgain // it was extended since
		}
		return nil, fmt.Errorf("%w: %s, token %d: the hold ended or moved on meanwhile", repo.ErrNotHeld, t.Core.ItemName(key), seen.Held)
	}
	if res.Clean {
		return nil, fmt.Errorf("%w: %w", repo.ErrNotHeld, UnknownOutcome(t.Core.Table, key, errEndedSince))
	}
	return nil, UnknownOutcome(t.Core.Table, key, nil)
}

// goesOn reports whether the hold that an image has shown is in place in another one, and
// nothing there has the mark of its break.
func (t *Locker) goesOn(now, image ddb.Item, seen stored.Record, mark protocol.WriteID) bool {
	l, err := t.Core.ParseRecord(now)
	same := err == nil && l.Busy() && l.By == seen.By && l.Held == seen.Held
	return same && protocol.RingVerdict(mark, t.Core.Ring(image), t.Core.Ring(now)) != protocol.Committed
}

// errEndedSince is why a call that ends another's hold cannot say that it did not.
var errEndedSince = errors.New("the hold has ended meanwhile, by others unless the network delivered this request twice")

func (t *Locker) broken(ctx context.Context, key repo.Key, seen stored.Record) {
	t.Core.Observe.Broken(ctx, t.Kind, telemetry.Operator, slog.String("key", key.String()), slog.String("from", seen.Owner()), slog.Int64("lost", seen.Held))
}
