// Package ddb is the transport: the only home of sending and repeating
// conditional writes. It knows attributes and conditions, no lock and no Go types
// of users, and it never guesses.
//
// # Promise
//
// Every call of [Table.Update] and [Table.Delete] ends in one of four
// verdicts: the write was applied, its condition failed (with the item that
// made it fail, the "image"), it was refused and certainly not applied, or
// nobody can tell. Package protocol turns an image into the final word for a
// lock's commit and for a version check.
//
// # Protocol
//
// One conditional write is sent once per attempt. The SDK's own retrying is
// off for the call, because only whoever repeats a write knows whether an
// earlier attempt may have landed. Repeats follow the client's retry policy:
// its retryer classifies, delays, counts attempts and hands out tokens.
//
// An attempt is clean when it certainly changed nothing: it never left the
// process, the connection was refused, or the service answered with a 4xx
// error. It is ambiguous after a time-out, a reset, a 5xx, or a reply that
// cannot be decoded, is not whole (reply.go), or is not certainly the service's own
// (answer.go: one function for all operations). Once an attempt was ambiguous,
// a later refusal proves nothing about it, and a failed condition is judged
// from the image alone.
//
// An attempt is seen if the options of its call took effect, and its request
// left the process once at most. If not (a wrapper of the client dropped the
// options, or the SDK repeats by itself), it is ambiguous whatever its error
// says. An HTTP client that repeats inside Do cannot be seen through: users are
// told not to have one.
//
// All attempts of one call carry the same bytes (replay.go). A late copy of an
// earlier attempt can therefore never succeed where the verdict said it failed.
//
// Whether there was an item is learned from the image of a failed condition.
// An endpoint that returns none is found out (image.go).
//
// # Trust
//
// The service evaluates a condition and its write atomically per item, and
// answers on one connection belong to the request sent on it. Clocks are
// trusted for nothing here: callers put times into the conditions.
package ddb
