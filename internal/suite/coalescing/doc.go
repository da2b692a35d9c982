// Package coalescing shows, by its tests, that many callers of one process on
// one item send the requests of one, and that nobody is harmed by it:
// handoffs, changes that are written together, and items that are kept.
package coalescing
