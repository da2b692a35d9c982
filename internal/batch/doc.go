// Package batch lets one write commit the changes of several callers.
//
// # Promise
//
// The changes of a batch act one after the other, in the order of the callers'
// arrival, each on a copy of the item of its own, in its caller's own
// goroutine. The outcome is that of the same changes written one by one: every
// caller gets the item as it was after its own change, and the version counts
// every change. Nobody outside sees an item between two changes of a batch.
//
// A change that fails leaves the item as the change before it did, and fails
// alone; a panic stays in its caller's goroutine. A caller whose context ends
// leaves; the others go on. Every caller whose change was part of a write gets
// that write's verdict.
//
// # What a caller is told, and when
//
// What a change saw may include changes of the batch that are not written yet.
// So nothing that it led to, an error of its own either, is told before the
// batch's write has come to its end. If that end is failure, those who changed
// nothing have seen what never was: their changes run again, alone. So does a
// change that asks for the removal of the item, and each one where the batch
// was refused for what it writes (too large, of a wrong type): only who is at
// fault shall fail.
//
// Each is told the end of its own context, also where all have left and the
// batch has ended for it.
//
// # Whose memory
//
// What a change leaves is encoded in its caller's goroutine, before the change
// counts as run; from then on the batch goes by encodings alone. A caller whose
// context ends may be told "unknown" while other changes still run, and does
// with its maps and lists what it likes. So no verdict is given before the
// encoding is made, and no item is read after it: not for the next change,
// which gets a copy decoded for it, nor for the write, nor when the batch runs
// again after a conflict. An item that a change has left is kept for one end:
// to be given back to its own caller. A change that panics, or ends its
// goroutine, leaves nothing.
//
// The technique is flat combining: Hendler, Incze, Shavit, Tzafrir, "Flat
// Combining and the Synchronization-Parallelism Tradeoff" (2010), with group
// commit as databases know it.
package batch
