// Package copies shows, by its tests, what becomes of a request that the network delivers
// twice: for every call and every moment of the copy, the verdict and the item.
package copies
