package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    17_930,
	"history":     355,
	"jobs":        15_970,
	"localdb":     1_160,
	"lockedread":  14_910,
	"mutex":       13_855,
	"nolock":      20_145,
	"once":        13_435,
	"optimistic":  21_050,
	"pessimistic": 20_460,
	"repo":        7_665,
	"repotest":    10_285,
	"semaphore":   10_640,
	"ticket":      10_595,
	"txn":         18_600,
	"unique":      7_865,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 81_400

const margin = 0.03
