// Package cas is compare and set: it reads an item, runs a user's change on it,
// checks what that did, and writes the difference if the item is as it was read.
// It also creates items.
//
// # Protocol of writers that hold no lock
//
// Every write of theirs demands that the attribute lockedBy is absent: no
// clock, no extra request. If the write fails and the image shows a live hold,
// the writer waits with full-jitter backoff, or gives up, as configured. If it
// shows an expired one, the writer breaks it under "exactly as seen", which
// leaves the holder's token as evidence, and tries again.
//
// # What a call remembers
//
// A [unlocked.Call] sends the writes of one call and gives its error the last form: if
// something that it sent is in doubt, "nothing was written" becomes "unknown"; if
// its context ended, the error says for what the call was waiting: a hold, or the
// writers that were first.
package cas
