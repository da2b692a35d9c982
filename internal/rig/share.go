package rig

import (
	"fmt"
	"os"
	"testing"
)

// proof is how much of the long proofs runs. Every tier of tests (models, faulted
// runs, histories, killed processes) runs at every level; what differs is how
// many rounds it makes, or how wide it searches.
//
//	(not set)  the quick share, for whoever changes the code, and for CI
//	full       what is run before a change to a protocol is merged
//	soak       what takes hours, and is quoted in docs/reliability.md
//
// With -short it is always the quick share.
const proof = "DYNAHOLD_PROOF"

// Quick reports whether a test is to run its quick share only.
func Quick() bool { return level() == "" }

// Soaking reports whether a test is to run for as long as it can be of use.
func Soaking() bool { return level() == "soak" }

// Share is what a test runs at the level that is asked for: its quick share, or
// all of it.
func Share[V any](quick, full V) V {
	if Quick() {
		return quick
	}
	return full
}

func level() string {
	level := os.Getenv(proof)
	switch level {
	case "", "full", "soak":
	default: // a proof that is thought to have run, and has not, is worse than none
		panic(fmt.Sprintf("%s is %q: use full or soak, or do not set it", proof, level))
	}
	if testing.Short() {
		return ""
	}
	return level
}
