// Package local keeps the callers of one process that want the same thing in
// a queue: one of them has the turn and acts, and passes it on with what it knows
// ([Queues]). It may take others along, and act for them (package combine). A [Line] is the
// queue of those who want a lock, single changes, handles and transactions: a [Turn] is
// the lock and the turn, which go on together.
//
// # Promise
//
// For each key, callers get the turn one at a time, in the order in which they
// joined. A caller leaves when its context ends, at any moment, and nobody
// behind it is harmed. A queue without callers takes no memory. Callers of
// different keys share nothing but, at times, a lock that is held for a few
// instructions.
//
// # Not promised
//
// The turn is a courtesy, not a lock: who relies on it for safety is wrong. A
// holder that does not move for longer than the next caller's patience is
// overtaken: it goes on without knowing, and the next one begins beside it. So
// a change that hangs, a handle that nobody closes, and a change that waits
// for another change of the same item delay those behind them but cannot stop
// them.
//
// # States of a place
//
//	waiting -> holding    the one before passed the turn on, or was overtaken
//	waiting -> drawn      the holder took it along, to act for it
//	waiting -> gone       its context ended
//	holding -> gone       Pass
//	drawn   -> gone       at once: the queue has forgotten it
//
// Rejected: a channel per key as a lock (nobody can be taken along, and nothing
// passed on), and a goroutine per key (it must be found, fed and stopped).
package local
