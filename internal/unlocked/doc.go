// Package unlocked is one call that writes an item without holding its lock. A [Call]
// waits for those who do: with backoff, or in the queue on the item where others stand in
// it too; what is left of a dead holder it clears away. It knows what the call has sent,
// and gives its error the last form: while something may have been applied, "nothing was
// written" becomes "unknown".
package unlocked
