package load

import (
	"os"
	"testing"
)

// Main runs a program that wants virtual time; a main function calls it and
// nothing else, and it does not return. The program's result is the exit code.
//
// Virtual time is testing/synctest's, which wants a test. Main therefore runs
// the whole program as one. Package testing registers its flags in the
// process's flag set, so the program should parse its own with a set of its
// own, from os.Args as usual.
func Main(program func(h *Harness) int) {
	args := os.Args
	os.Args = args[:1] // package testing shall find nothing in it
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "main", F: func(t *testing.T) {
		os.Args = args
		h := &Harness{t: t}
		code := program(h)
		h.Close()
		// From here, so that package testing has no say and prints nothing.
		os.Exit(code)
	}}}, nil, nil)
}
