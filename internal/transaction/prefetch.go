package transaction

import (
	"cmp"
	"context"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Keys are keys of one repository.
type Keys struct {
	member member
	keys   []repo.Key
	raw    []ddb.Item
	err    error
}

// Table is the name of their table.
func (k Keys) Table() string { return k.member.core.Name }

// Keys are keys of the strategy's repository, for [Tx.Prefetch].
func (s *Strategy) Keys(keys ...repo.Key) Keys {
	k := Keys{member: s.member(), keys: keys}
	for _, key := range keys {
		raw, err := s.Table.EncodeKey(key)
		if err != nil && k.err == nil {
			k.err = err
		}
		k.raw = append(k.raw, raw)
	}
	return k
}

// Prefetch reads items with one request, as they are at one moment. Items of
// repositories that lock, and those that others want of repositories with a queue for
// them, are locked, in their order, by a request for each.
func (tx *Tx) Prefetch(ctx context.Context, all ...Keys) error {
	ctx, done, err := tx.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	var wanted, locked []*entry
	for _, k := range all {
		if k.err != nil {
			return k.err
		}
		for i, key := range k.keys {
			e, err := tx.call.entryOf(k.member, key, k.raw[i])
			if err != nil {
				return err
			}
			if err := e.enter(ctx); err != nil {
				return err
			}
			e.lineUpIfContended()
			locks := e.locker != nil
			e.leave()
			if locks {
				locked = append(locked, e)
			} else {
				wanted = append(wanted, e)
			}
		}
	}
	if len(wanted)+len(locked) > maxItems {
		return tx.doom(tooMany())
	}
	if err := tx.lockAll(ctx, locked, func() { tx.readAhead(ctx, wanted) }); err != nil {
		return err
	}
	return tx.readUnknown(ctx, wanted)
}

// readAhead reads what is not known while the one before, in the line of this process,
// has the last lock: under the own one the items would be read in everybody's way.
// What came of it shows when the lock is there.
func (tx *Tx) readAhead(ctx context.Context, entries []*entry) {
	ctx, done, err := tx.enter(ctx)
	if err != nil {
		return
	}
	defer done()
	_ = tx.readUnknown(ctx, entries)
}

// lockAll takes the locks of items in their order. next is run while the call is the
// next in its process to have the last of them.
func (tx *Tx) lockAll(ctx context.Context, entries []*entry, next func()) error {
	slices.SortFunc(entries, byPlace)
	for i, e := range entries {
		if err := e.enter(ctx); err != nil {
			return err
		}
		var err error
		if !e.known {
			if i == len(entries)-1 {
				e.next = next
			}
			err = e.fetch(ctx, tx, false)
			e.next = nil
			if e.run == tx {
				e.now = e.image
			}
		}
		if err == nil {
			err = tx.refuseMade(e)
		}
		e.leave()
		if err != nil {
			return err
		}
	}
	return nil
}

// readUnknown reads, with one request, those of some items that are not known.
func (tx *Tx) readUnknown(ctx context.Context, entries []*entry) error {
	// Each once, and in one order: others of the closure may do the same.
	for _, e := range slices.Compact(slices.SortedFunc(slices.Values(entries), byPlace)) {
		if err := e.enter(ctx); err != nil {
			return err
		}
		defer e.leave()
	}
	var unknown []*entry
	for _, e := range entries {
		if (!e.known || e.stale(tx.call)) && e.blind == nil && !slices.Contains(unknown, e) {
			unknown = append(unknown, e)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	moment := tx.call.tick()
	images, err := tx.call.readAll(ctx, unknown)
	if err != nil {
		return err
	}
	for i, e := range unknown {
		e.image, e.moment = images[i], moment
		e.known = !e.lockedByOthers() || e.readable() // else the first touch waits for it
		if e.run == tx {
			e.now = e.image
		}
		if err := tx.refuseMade(e); err != nil {
			return err
		}
	}
	return nil
}

// byPlace is the order of items.
func byPlace(a, b *entry) int { return cmp.Compare(a.place, b.place) }
