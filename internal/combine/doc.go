// Package combine makes one write of the changes of many callers who want the same item.
// A [Group] is led by the caller that has the turn; the others are its [Participant]s, and
// each runs its own change, in its own goroutine, on what the changes before it have left.
//
// A change that wants to be alone, such as one that removes the item, or that may not be
// the one for whom the write failed, runs again alone: [Group.Conclude] returns it.
package combine
