package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    18_135,
	"history":     355,
	"jobs":        16_135,
	"localdb":     1_185,
	"lockedread":  15_140,
	"mutex":       14_075,
	"nolock":      20_395,
	"once":        13_665,
	"optimistic":  21_290,
	"pessimistic": 20_710,
	"repo":        7_810,
	"repotest":    10_485,
	"semaphore":   10_810,
	"ticket":      10_780,
	"txn":         18_880,
	"unique":      8_015,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 83_500

const margin = 0.03
