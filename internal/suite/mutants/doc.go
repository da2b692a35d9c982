// Mutants breaks the library on purpose, in one place at a time, and expects that its
// tests find each break: a break that none finds is a test that is missing.
//
//	go run ./internal/suite/mutants                # all
//	go run ./internal/suite/mutants -run 'queue'   # those whose names match
//	go run ./internal/suite/mutants -share 2/8     # every eighth, from the second
//	go run ./internal/suite/mutants -list
//
// Each mutant is one text in one file of the library in the place of another, and the
// narrowest tests that are meant to find it: a search of a model, the tests of one
// package, or a suite. Those tests must pass on the library as it is. The tree is not
// touched: package go builds with an overlay.
//
// The program exits with 1 if a mutant survives, if its text is not there exactly once
// (it is stale: the list must follow the code), if it does not build, or if its tests do
// nothing but hang, which a slow machine does, too.
//
// A test that compares requests with what they were, such as the golden file of the wire,
// would find every mutant of a condition. None of the list relies on one: it tells that a
// request has changed, and not that it is wrong.
package main
