package lockedread

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
)

// claim commits an edit that changes what the item claims: in a transaction, which ends the
// hold too. The caller has begun the end. With ErrOutcomeUnknown it returns the item as it
// is if it was written.
func (h *hold) claim(ctx context.Context, edit typed.Edit, now ddb.Item, count int64) (item any, err error) {
	core := h.l.line.Core
	if !edit.Remove {
		if err := typed.CheckNotStale(core, h.start.Raw, now); err != nil {
			return nil, err
		}
		item = h.l.table.WithVersion(edit.Item, typed.Version(core, now))
	}
	settings := lock.Settings{Kind: telemetry.Pessimistic, Wait: h.l.line.Wait, Skew: h.l.line.Skew, Clock: core.Clock}
	_, err = typed.Claiming{Table: h.l.table, Settings: settings, Key: h.lock.Key(), Raw: h.raw, Base: h.start.Raw, Now: now, Count: count, Turn: h.turn}.Write(ctx)
	h.turn.PassOn(nil, nil)
	return item, err
}
