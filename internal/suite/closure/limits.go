package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    18_075,
	"history":     355,
	"jobs":        16_070,
	"localdb":     1_185,
	"lockedread":  15_060,
	"mutex":       14_000,
	"nolock":      20_335,
	"once":        13_590,
	"optimistic":  21_230,
	"pessimistic": 20_650,
	"repo":        7_785,
	"repotest":    10_460,
	"semaphore":   10_770,
	"ticket":      10_720,
	"txn":         18_810,
	"unique":      7_990,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 83_000

const margin = 0.03
