package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    17_785,
	"history":     355,
	"jobs":        15_785,
	"localdb":     1_150,
	"lockedread":  14_815,
	"mutex":       13_755,
	"nolock":      20_055,
	"once":        13_335,
	"optimistic":  20_955,
	"pessimistic": 20_365,
	"repo":        7_595,
	"repotest":    10_195,
	"semaphore":   10_565,
	"ticket":      10_515,
	"txn":         18_515,
	"unique":      7_795,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 80_900

const margin = 0.03
