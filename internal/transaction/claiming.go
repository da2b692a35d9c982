package transaction

import (
	"context"
	"errors"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// A single change of an item that changes its claims too is a transaction of that item,
// whose closure has run already: by its strategy, which also decides what follows where
// others wrote first.

func init() { typed.SetClaim(writeClaiming) }

const (
	claimAttempts  = 256
	leastClaimWait = time.Millisecond
	mostClaimWait  = 20 * time.Millisecond
)

// writeClaiming commits one item and its claims.
func writeClaiming(ctx context.Context, w typed.Claiming) (image ddb.Item, err error) {
	core := w.Table.Core
	c := &call{Config: Config{Attempts: claimAttempts, Observe: core.Observe}, entries: map[string]*entry{}, pause: pause{least: leastClaimWait, most: mostClaimWait}}
	defer c.depart()
	e, err := c.entryOf(member{by: w.Table, core: core, Settings: w.Settings}, w.Key, w.Raw)
	if err != nil {
		return nil, err
	}
	if turn, held := w.Turn.(*local.Turn); held {
		e.turn, e.lent = turn, true
	}
	e.ifFree = w.IfFree
	e.known, e.image, e.moment = true, w.Base, c.tick()
	e.begin(nil)
	e.now, e.count = w.Now, w.Count
	if err := c.commit(ctx, []*entry{e}, nil); !errors.Is(err, errAgain) {
		return nil, Single(err)
	}
	return e.image, typed.ErrMoved
}

// Single is the error of a transaction as that of its one item.
func Single(err error) error {
	e, ok := err.(*Error) //nolint:errorlint // only as it was made
	switch {
	case !ok || len(e.Failed) == 0:
		return err
	case e.Why != nil:
		return ddb.Join(e.Failed[0].Err, e.Why)
	}
	return e.Failed[0].Err
}

// Alone runs an operation that has to know its item as a transaction of that.
func Alone(ctx context.Context, s *Strategy, attempts int, do func(ctx context.Context, view *View) error) error {
	cfg := Config{Attempts: attempts, Observe: s.Table.Core.Observe, Wait: repo.Wait{Min: leastClaimWait, Max: mostClaimWait}}
	return Single(Run(ctx, cfg, func(ctx context.Context, tx *Tx) error { return do(ctx, s.In(tx)) }))
}
