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
// The technique is from the article "Distributed Locking in DynamoDB" (ticket
// queue); locks by tickets go back to Lamport, "A New Solution of Dijkstra's
// Concurrent Programming Problem" (1974, the bakery), and Reed and Kanodia,
// "Synchronization with Eventcounts and Sequencers" (1979). Closed here is the
// gap between the drawing of a number and the entry that shows it: whoever
// looked in between went in first, with a greater number. Here both are one
// conditional write.
//
// # Guarantees
//
// Turns are given in the order of the numbers, among those who are alive and were not
// taken out by force (Break), and numbers only grow. Turns are exclusive as long as clocks differ by less than
// the allowance (trusting mode) or run at nearly equal rates (clockless) and
// the holder stops at its deadline. External effects are safe only if the
// outside resource rejects smaller tokens. All of it within one Region (or a
// strongly consistent global table), and between writers that follow the
// protocol.
//
// # Protocol
//
// Identity. A queue is one item; its key is "<namespace>/<entity>". An entry is
// a random id of its own, 48 bits, with its ticket: w_<id> is the number, b_<id>
// the end (Unix seconds, when others may pass it over), l_<id> the lease in
// seconds where it is not 30. next is the last number drawn, n the number of
// entries, left the last ticket whose owner took its entry away, expiresAt the
// TTL, a day past every end. With Config.Owner o_<id> says who and since when. A ticket
// that was taken away by force leaves x_<ticket>, the end that its entry had.
//
// Join (1 request). Draws next+1 and writes the entry, unless the id is there,
// and returns the item. The first number of an item is the time in
// microseconds, so that numbers keep growing when an item is removed and made
// anew. Repeats carry the same bytes; an entry with our id and our end is ours.
// TryLock adds the condition that n is zero. The count only spares it a ticket
// where somebody is there: whose turn it is the entries of the answer decide,
// for TryLock too. Where they say otherwise than a count that somebody has
// changed by hand, TryLock gives its ticket back and reports ErrSchema, with
// ErrLocked if somebody alive is there.
//
// What must be true of an item. next, n and left are whole numbers from 0 to
// 2^62, left not above next; tickets are from 1 to next and differ; ends are
// after 1970 and before the year 10000, leases above 0 and at most a day. Else
// nobody goes in, and the error is ErrSchema. That next and n are within bounds
// is a condition of joining: nothing is written. What a condition cannot see,
// such as others' entries or a fraction, the answer shows: the entry is taken
// back (1 more request). Who holds goes on: its renewal is about its own entry.
//
// A turn is believed only on evidence: an answer that shows our entry, with our
// ticket, as the lowest. Later numbers are greater, so it stays so as long as
// the entry is there, and nobody takes it away before the own deadline.
//
// Renewal (1 request). Moves the end, if the ticket is still there; an end only
// grows. Its answer is also a look at the queue. The deadline counts from when
// the request that succeeded was first sent, minus a margin.
//
// Passing over (1 request for up to 40). The first live entry in line removes
// those before it, each if ticket and end are exactly as it saw them, and goes
// in only when an answer shows that they are gone: a renewal under way may
// come first. Stale is what is past its end by more than the allowance; with
// Clockless, what stood unchanged for its lease on the watcher's own clock,
// since the first answer that showed it arrived.
//
// Callers of one Queue, in one process, share requests; each has a ticket of its own,
// and is served by its number like all others. An answer that shows the queue to one of
// them shows it to all, if it shows their entries or was asked for after they had drawn:
// so the first of them looks for all, and behind a turn of their own process they look
// once a second, for its Done tells them. Whoever comes to [Queue.Lock] while another of
// its process stands in the queue, and nobody of another process was seen there, draws with
// the Done or Leave of one that is before it: one request removes the entry and makes
// the new ones, under the conditions of both, so it can be applied once. Where the new
// ones are refused, or do not fit on the item, it is sent without them. It waits 50 ms
// at most for that, and goes to the queue at once where others are seen. Join and TryLock
// go there at once.
//
// Done and Leave (1 request). Remove the own entry if the ticket is ours. If the
// entry is gone after an attempt that had no answer, that attempt did it as
// long as the own deadline has not passed, for nobody else could; after it,
// and after a first attempt, others had passed it over: ErrLockLost. Where a
// request was delivered twice, the number in left tells, or, before the deadline, that the
// item still is the one in which the ticket was drawn.
//
// Break (2 requests). Removes an entry by force if it is as it was seen, and leaves
// evidence of it for a day: whose own removal has no answer must not take itself for
// the cause. Its owner learns it from its next renewal, and until then believes in a
// turn that another may have, with a greater token.
//
// Coming back. Lock holds nothing while it waits, so it does not fail where the
// deadline of its place passes, because its process was suspended or the network
// was away. It renews the entry under its number (1 request): that and a passing
// over exclude each other. If the entry is gone, it draws anew, at the end of
// the line. A ticket that was drawn with Join ends at its deadline, as its
// context says.
//
// In a transaction (package txn, Require) the commit checks that the entry is there
// under its number: two write units per KB, no request. Later numbers are greater, so it
// is the turn's still.
//
// Failures:
//
//   - Whoever dies is passed over after its lease.
//   - A request to join whose caller gives up is waited for, 1 s at most. One without
//     any answer is taken back by its id, and reported. All that ends 3 s after the
//     caller's context at the latest, as do Done and Leave; Close keeps to its own
//     context, and gives back 16 tickets at a time.
//   - A call for a ticket waits for another one of the same ticket no longer than that;
//     an extension or a renewal gives way to it.
//   - The answer to a look, or to a passing over, is waited for 1 s at first, whatever
//     the attempt time-out: one that is lost costs the line a second.
//   - A late copy of a request to join, delivered after its owner has left, makes an
//     entry that nobody owns: it stalls the line until the end that its request named,
//     a lease after it was first sent at most.
//   - An operator who deletes the item ends all turns and places. Their owners learn it
//     from their next renewal, and for up to a third of a lease a new holder may stand
//     beside the old one, with a greater token.
//
// # Requests
//
//	Lock of a free queue, Join, TryLock   1 write
//	Done, Leave, Extend, each renewal     1 write
//	Lock behind another of its process    none, if a Done draws for it
//	look of a waiter, Position, List      1 consistent read
//	passing over                          1 write for up to 40 entries
//	Break                                 1 consistent read, 1 write
//	Lock, away for longer than its lease  1 or 2 writes more
//
// Holders and waiters renew after a third of the lease. The next in line looks
// after an eighth of the time for which it has been next, within Config.Wait;
// those behind it after half of the time that the line needs by its observed
// pace, and never after more than twice their last pause: the number of looks
// grows with the logarithm of the position.
//
// Every request bills the whole item: a write one unit per KB, a read one per
// 4 KB. An entry takes about 38 bytes (50 with a lease of its own), the rest of
// the item about 50 and its key. With 100 waiters a write bills 4 units and a
// read 1; with 300, 12 and 3. Config.Owner adds its length and 26 bytes to each. As an item takes 1000 write units in a second, and
// 300 waiters with the default lease renew 30 times in it (360 units), some
// hundred waiters are what one item carries; longer leases carry more.
package ticket
