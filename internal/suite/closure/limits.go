package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"delegate":    17_680,
	"history":     355,
	"jobs":        15_720,
	"localdb":     1_150,
	"lockedread":  14_720,
	"mutex":       13_660,
	"nolock":      19_960,
	"once":        13_240,
	"optimistic":  20_860,
	"pessimistic": 20_270,
	"repo":        7_500,
	"repotest":    10_100,
	"semaphore":   10_470,
	"ticket":      10_420,
	"txn":         18_420,
	"unique":      7_700,
}

// testsLimit are the lines of tests of all modules, which somebody has to read too: today's
// figure. No two of them are one text; what a table over types or packages can say once is
// to be said there, and shown by internal/suite/mutants not to find less.
const testsLimit = 80_800

const margin = 0.03
