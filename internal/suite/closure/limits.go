package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"localdb":     1_050,
	"lockedread":  14_000,
	"mutex":       13_100,
	"nolock":      17_450,
	"once":        12_800,
	"optimistic":  18_350,
	"pessimistic": 17_800,
	"repo":        6_800,
	"repotest":    9_300,
	"semaphore":   19_950,
	"ticket":      9_450,
	"txn":         16_050,
}

const margin = 0.03
