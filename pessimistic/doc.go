// Package pessimistic is the strategy "lock and read": one request takes the
// item's lock and returns the item, one commits the change and releases the
// lock. Others wait meanwhile.
//
//	products, err := pessimistic.New(table, pessimistic.Config{})
//	if err != nil {
//		return err
//	}
//	apple, err := products.Update(ctx, repo.Key{Partition: "apple"}, func(ctx context.Context, p *product) error {
//		p.Stock-- // nobody else changes this apple meanwhile
//		return nil
//	})
//
// Choose it where changes of one item collide often, take long, or have side
// effects that must not run twice at once: change runs once, under the lock.
// It bills two writes of the whole item per change, so from some 10 KB on
// optimistic is cheaper. The protocol and its guarantees are those of package
// lockedread.
//
// # Items that many want
//
// Callers of one process wait in a queue and pass the lock on: one write per
// change. Config.Combine lets one write commit the changes of all who wait; a
// change may then run again. Processes wait in a queue on the item: no try is
// wasted, and the longest wait is close to the usual one, for some reads. With
// Config.Race they try again at random times: no reads, and long tails.
package pessimistic
