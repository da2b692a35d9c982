// Package optimistic is the strategy "version": read, change, and write only
// if the version is still the one that was read. Nobody holds a lock.
//
//	products, err := optimistic.New(table, optimistic.Config{})
//	if err != nil {
//		return err
//	}
//	apple, err := products.Update(ctx, repo.Key{Partition: "apple"}, func(ctx context.Context, p *product) error {
//		p.Stock-- // runs again, from the item as it is then, if somebody else was first
//		return nil
//	})
//
// Choose it where changes of one item seldom collide, or where items are large:
// a change costs a read and one write. change may run several times.
//
// # Items that many want
//
// Callers of one process wait in a queue, and each starts from the item that the
// one before it has written: one write per change, no read, no conflict. With
// Config.Combine one write carries the changes of all who wait; with Config.Warm
// a change starts without a read where this process is the one that changes
// the item. Between processes who writes first wins, with random backoff; with
// Config.Fair an item that several processes want is changed under its lock,
// for which they wait in a queue on the item.
//
// # Protocol
//
// The attribute tagged repo:"version" grows by one with every data write of
// every strategy, by the number of changes that it carries; the first version
// of an item is 1. Beside it the attribute
// "writers" keeps the random ids of the latest eight writes, newest first.
//
// A write based on version v demands that version and writers are as read
// (absent as absent: an item from before the library is adopted), and that
// nobody holds the item's lock. Equality of writers keeps an item that was
// deleted and made anew from passing as the same version.
//
// If the condition fails, the image tells: our id among the writers means that
// an earlier attempt was applied; the newest id that we had read, still in
// sight without ours after it, means not applied; else the outcome is unknown
// if an attempt had no answer, or others have written eight times. Whatever image
// any caller of the process gets in the meantime is evidence too. Where others
// wrote first in the last 10 s the process looks for it: it reads the item beside a
// write that takes four times as long as is usual, until that tells, and again
// where a read took so long.
//
// The image of a conflict is the input of the next attempt, at once; after a sleep
// it would be stale, and the item is read again.
//
// A delete leaves no evidence: one whose answer was lost, and that then finds
// no item, ends in ErrOutcomeUnknown.
//
// The technique is from Kung and Robinson, "On Optimistic Methods for
// Concurrency Control" (1981).
package optimistic
