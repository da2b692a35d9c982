// Package nested shows, by its tests, which calls are refused inside changes of items and
// inside closures of transactions, of every strategy, and what goroutines of one closure
// may do.
package nested
