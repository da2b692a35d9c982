package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    16_200,
	"history":     350,
	"jobs":        14_400,
	"localdb":     1_150,
	"lockedread":  13_800,
	"mutex":       13_100,
	"nolock":      18_600,
	"once":        12_700,
	"optimistic":  19_350,
	"pessimistic": 18_750,
	"repo":        7_200,
	"repotest":    9_700,
	"semaphore":   10_150,
	"ticket":      10_050,
	"txn":         16_900,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 71_300

const margin = 0.03
