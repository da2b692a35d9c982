package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    17_740,
	"history":     355,
	"jobs":        15_740,
	"localdb":     1_150,
	"lockedread":  14_770,
	"mutex":       13_720,
	"nolock":      20_000,
	"once":        13_290,
	"optimistic":  20_910,
	"pessimistic": 20_310,
	"repo":        7_540,
	"repotest":    10_140,
	"semaphore":   10_520,
	"ticket":      10_470,
	"txn":         18_450,
	"unique":      7_740,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 80_900

const margin = 0.03
