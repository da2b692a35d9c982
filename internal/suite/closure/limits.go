package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    17_960,
	"history":     355,
	"jobs":        15_970,
	"localdb":     1_160,
	"lockedread":  14_940,
	"mutex":       13_870,
	"nolock":      20_180,
	"once":        13_460,
	"optimistic":  21_090,
	"pessimistic": 20_500,
	"repo":        7_690,
	"repotest":    10_330,
	"semaphore":   10_670,
	"ticket":      10_625,
	"txn":         18_635,
	"unique":      7_890,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 81_900

const margin = 0.03
