// Package load measures ways to change items and checks that none of them
// loses a change.
//
// # Promise
//
// A [Contender] works on a [Workload], and the [Result] says what was
// acknowledged, what it cost and who got it. Requests are counted where they
// leave the process, so nobody can forget one. At the end the counters in the
// items are compared, item by item, with what every worker was told: Lost and
// Extra are what was told wrongly. Changes of several items move something between
// them, and half a change shows as an Imbalance.
//
// # A run
//
//  1. A new table with the items, filled past the contender.
//  2. In each process of the workload the contender is opened with a client of
//     its own. Each request waits half of its latency, reaches the engine, and
//     its answer waits for the other half. Latency comes from the seed, for
//     each process by itself.
//  3. The workers make changes, one after the other. After the warm-up the
//     measured time begins. It ends after the span, or sooner where that was
//     enough.
//  4. Changes under way are finished but count no more; after 30 s they are
//     cancelled. Then the table is read and dropped.
//
// A change counts if its acknowledgement falls into the measured time, a
// request if it was sent in it: in a steady state what begins before and what
// ends after make up for each other. The percentiles are of changes that began
// in the measured time, also those that ended later: leaving out the slow ones
// would flatter who starves them.
//
// Fairness needs turns: a process that makes a hundred changes in a row has had
// one, and after two or three of them the shares are still chance. A result
// therefore tells how many there were, and [Workload.Turns] asks for as many as it
// takes.
//
// # Units
//
// Requests ask for what they bill, and the answer tells. A failed condition
// tells nothing although it bills as much as the write: there the item in the
// answer is weighed, or the workload's size is taken. Writes of a cancelled
// transaction count twice that size each, and a transaction that only reads by the
// 4 KB. A write that an ongoing transaction refuses counts as wasted, for nothing.
//
// # Virtual time
//
// With [Options.Virtual] the run happens in a bubble of testing/synctest: its
// clock moves on only when every goroutine waits, and does so at once. Requests
// leave the bubble over a bridge, and whoever waits for an answer counts as
// working. So the clock stands still while the engine and the processor work,
// and a busy machine changes nothing. Wherever one goroutine acts at a time the
// same seed gives the same result.
//
// What it distorts:
//
//   - The processor costs nothing. A contender that burns it looks as good as
//     one that does not, and hundreds of pollers do not slow each other down.
//     Real time shows that.
//   - The engine costs nothing either, and never gets slower. There is no limit
//     of 1,000 write units a second per partition, and no throttling, but with
//     [Workload.Partition].
//   - All clocks are the same and never wrong. They begin with the year 2000,
//     which a server that checks signatures does not accept.
//   - What happens at one moment happens in any order.
//
// # What the embedded engine does not do
//
// An embedded engine applies a transaction in a moment; DynamoDB prepares it at every
// item and then writes them, two rounds. In virtual time, and where changes touch
// several items, that is added: a transaction takes the latency of two requests. A
// TransactWriteItems is in flight during the second one, and its items refuse every
// other write and transaction (TransactionConflict), as DynamoDB documents it; GetItem
// reads what was there before. A TransactGetItems is refused if a write of one of its
// items has begun before its second round has ended. How long DynamoDB's rounds are
// nobody has published; nor that a transaction whose condition fails is in flight for
// as long, which is assumed here.
//
// With [Workload.Partition] each item is alone in its partition, which takes 1,000
// write and 3,000 read units a second and saves up 100 ms of them. Who asks for more is
// refused: ProvisionedThroughputExceededException, of a transaction ThrottlingError.
//
// Contenders may use timers, channels and contexts as they like, and mutexes
// as long as nobody sleeps with one locked: waiting for a mutex stops the clock,
// so nobody would ever wake up. A run in which nothing happens for a minute of
// real time ends the program with all stacks, as does a panic and a deadlock
// that the runtime finds.
//
// # Trusted
//
// The engine's conditions and counters; the contender's word that a change
// adds one. A contender that loses one change and doubles another on the same
// item goes undetected. No faults are injected here: that answers are lost and
// clocks differ is for the tests of the protocols.
package load
