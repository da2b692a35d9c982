package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"history":     350,
	"jobs":        13_950,
	"localdb":     1_150,
	"lockedread":  13_200,
	"mutex":       12_700,
	"nolock":      17_400,
	"once":        12_300,
	"optimistic":  18_300,
	"pessimistic": 17_800,
	"repo":        6_750,
	"repotest":    9_250,
	"semaphore":   9_500,
	"ticket":      9_500,
	"txn":         16_000,
}

const margin = 0.03
