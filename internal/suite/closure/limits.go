package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    17_970,
	"history":     355,
	"jobs":        16_000,
	"localdb":     1_160,
	"lockedread":  14_960,
	"mutex":       13_900,
	"nolock":      20_190,
	"once":        13_495,
	"optimistic":  21_105,
	"pessimistic": 20_515,
	"repo":        7_705,
	"repotest":    10_345,
	"semaphore":   10_695,
	"ticket":      10_650,
	"txn":         18_660,
	"unique":      7_905,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 82_500

const margin = 0.03
