// Package pessimistic is the strategy "lock and read": one request takes the
// item's lock and returns the item, one commits the change and releases the
// lock. Others wait meanwhile.
//
// Choose it where changes of one item collide often, take long, or have side
// effects that must not run twice at once: change runs once, under the lock.
// It bills two writes of the whole item per change, so from some 10 KB on
// optimistic is cheaper. The protocol and its guarantees are those of package
// lockedread.
package pessimistic
