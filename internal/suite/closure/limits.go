package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"localdb":     1_050,
	"lockedread":  13_800,
	"mutex":       12_900,
	"nolock":      17_500,
	"once":        12_600,
	"optimistic":  18_400,
	"pessimistic": 17_900,
	"repo":        6_800,
	"repotest":    9_300,
	"semaphore":   19_950,
	"ticket":      9_450,
	"txn":         16_050,
}

const margin = 0.03
