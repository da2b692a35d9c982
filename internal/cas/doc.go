// Package guard is what strategies share above internal/ddb: waiting for an
// item that somebody else holds, running a user's change and checking what it
// did, creating an item, and the words in which outcomes are reported.
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
// A [Turn] sends the writes of one call and gives its error the last form: if
// something that it sent is in doubt, "nothing was written" becomes "unknown"; if
// its context ended, the error says for what the call was waiting: a hold, or the
// writers that were first.
package cas
