// Package lock takes, keeps, ends and judges holds of the item lock, without
// knowing a Go type of users. The packages lockedread (items) and mutex (named
// locks) are its faces; the protocol is stated there and in docs/protocol.md.
//
// # Promise
//
// Every request that takes or ends a hold comes to a true verdict: ours, not
// ours, or unknown. What an acquisition without an answer may have left behind
// is given back before its caller is told that it failed.
//
// With Config.Fair an acquisition waits in the queue on the item: queue.go
// (enqueue, dequeue), looks.go (looking at the item), poll.go (without an answer), takeover.go (whose turn
// it is, taking over from the dead), keep.go (confirming what was handed over), transfer.go
// (the write that ends a lock gives it to the next process). See lockedread's doc.go,
// "Fair".
//
// Those who write without the lock wait for holders too: package unlocked.
//
// # Trust
//
// What internal/ddb trusts, and clocks as far as [Config] says.
package lock
