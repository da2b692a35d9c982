package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    17_000,
	"history":     355,
	"jobs":        15_400,
	"localdb":     1_150,
	"lockedread":  14_550,
	"mutex":       13_650,
	"nolock":      19_400,
	"once":        13_150,
	"optimistic":  20_300,
	"pessimistic": 19_700,
	"repo":        7_550,
	"repotest":    10_150,
	"semaphore":   10_500,
	"ticket":      10_450,
	"txn":         17_900,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 74_800

const margin = 0.03
