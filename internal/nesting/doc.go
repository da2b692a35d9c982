// Package nesting knows what a context is inside of: changes of items, and closures of
// transactions. A call that must not be made there is refused before anything is sent.
//
// A change of an item is refused inside a change of the same item: it would wait for
// it, or make it fail, again and again. So is what waits for a lock, with the context of
// what holds it. What writes is refused inside a closure of
// which it is no part: the closure may run again, and each run would write, although
// the transaction fails.
//
// The context that a change or a closure is given tells, and each that is derived from
// it. A call with another one, such as that around the closure, is not told from one of
// somebody else.
package nesting
