package transaction

import (
	"cmp"
	"context"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
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
	named, err := tx.call.named(all)
	if err != nil {
		return err
	}
	if len(named) > maxItems {
		return tx.Doom(tooMany())
	}
	var read, locked []*entry
	for _, e := range named {
		if err := nesting.Touch(ctx, e.item(), e.key, tx); err != nil {
			return err
		}
		err := e.beside(ctx, tx.call, func() error {
			if e.lineUpIfContended(); e.locker != nil {
				locked = append(locked, e)
			} else {
				read = append(read, e)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := tx.lockAll(ctx, locked, func() { tx.readAhead(ctx, read) }); err != nil {
		return tx.failed(err)
	}
	return tx.failed(tx.readUnknown(ctx, read))
}

// named are the items of keys, each once, in the one order of all transactions.
func (c *call) named(all []Keys) (named []*entry, err error) {
	for _, k := range all {
		if k.err != nil {
			return nil, k.err
		}
		for i, key := range k.keys {
			e, err := c.entryOf(k.member, key, k.raw[i])
			if err != nil {
				return nil, err
			}
			named = append(named, e)
		}
	}
	slices.SortFunc(named, byPlace)
	return slices.Compact(named), nil
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

// lockAll takes the locks of items, which are in their order. next is run while the call
// is the next in its process to have the last of them.
func (tx *Tx) lockAll(ctx context.Context, entries []*entry, next func()) error {
	for i, e := range entries {
		err := e.beside(ctx, tx.call, func() (err error) {
			if tx.wants(e) {
				if i == len(entries)-1 {
					e.next = next
				}
				err = e.fetch(ctx, tx, false)
				e.next = nil
				e.found(tx)
			}
			if err == nil {
				err = tx.refuseMade(ctx, e)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wants reports whether an item is to be read beforehand: not one that is known, nor one
// of which the run has said what to write without that.
func (tx *Tx) wants(e *entry) bool {
	return (!e.known || e.stale(tx.call)) && (e.run != tx || e.blind == nil)
}

// found notes what was read beforehand of an item that the run has touched before.
func (e *entry) found(tx *Tx) {
	if e.run == tx {
		e.now = e.image
	}
}

// readUnknown reads, with one request, those of some items that are not known.
func (tx *Tx) readUnknown(ctx context.Context, entries []*entry) error {
	var unknown []*entry
	for _, e := range entries {
		if !e.op.TryLock() {
			continue // see beside
		}
		defer e.leave()
		if tx.wants(e) {
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
		e.found(tx)
		if err := tx.refuseMade(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// byPlace is the order of items.
func byPlace(a, b *entry) int { return cmp.Compare(a.place, b.place) }
