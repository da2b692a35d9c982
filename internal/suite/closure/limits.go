package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    16_500,
	"history":     350,
	"jobs":        14_700,
	"localdb":     1_150,
	"lockedread":  14_150,
	"mutex":       13_450,
	"nolock":      18_900,
	"once":        13_050,
	"optimistic":  19_700,
	"pessimistic": 19_100,
	"repo":        7_550,
	"repotest":    10_050,
	"semaphore":   10_450,
	"ticket":      10_350,
	"txn":         17_250,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 71_300

const margin = 0.03
