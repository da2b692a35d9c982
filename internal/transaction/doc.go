// Package transaction runs closures that read and change items of several tables
// and strategies, and commits what they did in one request. Package txn is its
// face; the protocol is stated in docs/protocol.md, "Transactions",
// and its pure part in internal/protocol.
//
// # How it goes
//
// A call of Run has an [entry] for each item that its closure has touched: the
// image that was read of it, and the lock that is held on it. Both outlive a run of
// the closure; what a run makes of the image does not. A run ends in one of three
// ways: it commits, it fails, or the closure runs again, because a condition of the
// commit failed or because locks have to be taken in another order.
//
// A lock is a turn in the line of its repository's callers (internal/local): whoever
// ends it says whether it stays in the process, and what the item is now.
//
// # Trust
//
// What internal/lock trusts for the locks that it takes, and nothing else.
package transaction
