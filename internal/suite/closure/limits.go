package main

// limits are the lines that one import may compile. The tests allow 3 % more, so that not
// every change moves this table; who goes beyond says in the commit why it is worth it.
var limits = map[string]int{
	"localdb":     1_050,
	"lockedread":  14_650,
	"mutex":       13_000,
	"nolock":      17_300,
	"once":        12_700,
	"optimistic":  18_200,
	"pessimistic": 17_700,
	"repo":        8_250,
	"repotest":    10_700,
	"semaphore":   20_600,
	"ticket":      10_900,
	"txn":         16_700,
}

const margin = 0.03
