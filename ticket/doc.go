// Package ticket is a lock that serves in the order of arrival: who asks draws
// a number and stands in a queue, the lowest number holds the lock, and the
// number is its fencing token.
//
//	queue, err := ticket.New(client, "queues", ticket.Config{})
//	if err != nil {
//		return err
//	}
//	err = queue.Do(ctx, "printer", func(ctx context.Context, turn *ticket.Turn) error {
//		return printPage(ctx, turn.Number()) // in the order of asking
//	})
//
// # Promise
//
// Turns are given in the order of the numbers, among those who are alive and were not
// taken out by force (Break), and numbers only grow. Turns are exclusive as long as clocks
// differ by less than ClockSkew (or run at nearly equal rates, with Clockless) and the
// holder stops when its context ends. Every call ends in a true verdict; what copies of a
// request may do is in docs/limits.md. How it works: docs/protocol.md, "Queue lock".
//
// # Use
//
// [Queue.Lock] waits, bounded by its context; TryLock does not; Join draws a ticket to wait
// for later. [Turn.Number] is the fencing token. Waiters and holders renew by themselves
// after a third of the lease; who dies is passed over when it is over. Lock draws anew,
// at the end of the queue, if its place was passed over because its process stood still.
// [Queue.List] shows who stands in a queue, [Queue.Break] takes one out.
//
// A queue is one item; its key is "<namespace>/<entity>". An entity may have several, by
// Config.Namespace. Attributes in the item that are not the library's are repo.ErrSchema.
//
// # Costs
//
//	Lock of a free queue, Join, TryLock   1 write
//	Done, Leave, Extend, each renewal     1 write
//	Lock behind another of its process    none, if a Done draws for it
//	each read of a waiter, Position, List 1 consistent read
//	passing over                          1 write for up to 40 entries
//	Break                                 1 consistent read, 1 write
//
// Every request bills the whole item. An entry takes about 38 bytes: with 100 waiters a
// write bills 4 units and a read 1. How often a waiter reads grows with the logarithm of
// its position. Some hundred waiters are what one item carries; longer leases carry more.
//
// # Sources
//
// The article "Distributed Locking in DynamoDB" (ticket queue); locks by tickets go back to
// Lamport, "A New Solution of Dijkstra's Concurrent Programming Problem" (1974), and Reed
// and Kanodia, "Synchronization with Eventcounts and Sequencers" (1979). Closed here is the
// gap between the drawing of a number and the entry that shows it: both are one write.
package ticket
