package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    17_640,
	"history":     355,
	"jobs":        15_640,
	"localdb":     1_150,
	"lockedread":  14_670,
	"mutex":       13_610,
	"nolock":      19_910,
	"once":        13_190,
	"optimistic":  20_810,
	"pessimistic": 20_220,
	"repo":        7_450,
	"repotest":    10_040,
	"semaphore":   10_420,
	"ticket":      10_370,
	"txn":         18_370,
	"unique":      7_650,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 80_600

const margin = 0.03
