// Package single shows, by its tests, what becomes of copies of requests of one item: each
// call of the strategies at each moment of the copy.
package single
