package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// noted is what became of a note, from the image that has refused it.
type noted int

const (
	holdOver  noted = iota // the lock is not held any more
	notNoted               // others have moved lockToken: it is sent again, to what that is now
	wasNoted               // an earlier attempt, or a copy, was applied
	notPaired              // it stands as it was demanded: what refused it nobody knows
	holdMoved              // the lock is not held any more, and others came behind the note or instead of it
)

// judgeNote tells: nobody but the holder writes notes, one after the other.
// given says that a holder after that has the very token which the note demands that
// nobody had.
func judgeNote(held, carries, moved, given bool) noted {
	switch {
	case !held && moved && !given:
		return holdMoved
	case !held:
		return holdOver
	case carries:
		return wasNoted
	case moved:
		return notNoted
	}
	return notPaired
}

// Note keeps a value beside the lock, in the item. Each moves lockToken, as a request for
// the lock does, and demands it as it was last seen: so a copy that comes behind another
// note cannot put an earlier value back. kept is called when it is there, before another
// request for the hold.
func (h *Lock) Note(ctx context.Context, attr string, value types.AttributeValue, kept func()) error {
	if err := h.Begin(ctx); err != nil {
		return err
	}
	defer h.Done()
	err := h.note(ctx, attr, value)
	if err == nil {
		kept()
	}
	h.unnoted = errors.Is(err, repo.ErrOutcomeUnknown) || h.unnoted && err != nil
	return err
}

// note is Note by who holds op.
func (h *Lock) note(ctx context.Context, attr string, value types.AttributeValue) error {
	for {
		res, err := h.sendOwn(ctx, func(w *protocol.Write) {
			token := h.locker.Core.Attr.LockToken
			w.Set(attr, value)
			w.SetTo(token, w.Name(token)+" + "+w.Value(ddb.Integer(1)))
			w.IfNoNewWaiter(h.lastToken)
		}, func(image ddb.Item) bool {
			return ddb.Equal(image[h.locker.Core.Attr.LockToken], ddb.Integer(h.lastToken))
		}, once)
		switch {
		case err != nil:
			return err
		case res.Outcome == ddb.Applied:
			h.lastToken++
			return nil
		case res.Outcome != ddb.Condition:
			return Failed(h.locker.Core, h.key, res)
		}
		l, err := h.locker.Core.ParseRecord(res.Image)
		held := err == nil && l.By == h.id && l.Held == h.token
		given := err == nil && (l.Held == h.lastToken || l.Stolen == h.lastToken)
		switch judgeNote(held, ddb.Equal(res.Image[attr], value), l.Token != h.lastToken, given) {
		case holdMoved:
			return h.perhaps(errMoved)
		case holdOver:
			return h.lostRenewal(res)
		case notPaired:
			return UnknownOutcome(h.locker.Core.Table, h.key, nil)
		case wasNoted:
			h.seeToken(res.Image, l.Token)
			return nil
		}
		h.seeToken(res.Image, l.Token)
	}
}

// seeToken notes lockToken, and the queue, as an image of the own hold shows them.
func (h *Lock) seeToken(image ddb.Item, token int64) {
	h.noteQueue(image)
	h.lastToken = token
}

// once is how often a write is sent that nobody repeats.
func once(*ddb.Result) bool { return false }

// sendOwn sends an update of the item under the hold, as often as again says; before
// reports whether an item under the hold is as it was without it. The caller holds op.
func (h *Lock) sendOwn(ctx context.Context, set func(*protocol.Write), before func(ddb.Item) bool, again func(*ddb.Result) bool) (res ddb.Result, err error) {
	if err := h.Usable(); err != nil {
		return res, err
	}
	w := h.locker.Core.NewWrite()
	set(w)
	w.Own(h.id, h.token, time.Time{})
	in, err := w.Update(h.raw())
	if err != nil {
		return res, fmt.Errorf("%s: %w", h.locker.Core.ItemName(h.key), err)
	}
	opt := ddb.Options{Timeout: h.locker.Lease / 3, Holding: true, Absence: true,
		Stands: func(image ddb.Item) bool { return h.standsIn(image) && before(image) }}
	res = h.locker.Core.Update(ctx, in, opt)
	for again(&res) {
		res = h.locker.Core.Update(ctx, in, opt)
	}
	return res, nil
}
