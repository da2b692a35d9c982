// Package rows is what a transaction does to rows that are no items of a repository, so that
// who has such rows needs no transactions, and these know none of them.
package rows
