package main

import (
	"fmt"
	"slices"
	"strings"
)

// mutant is one break of the library.
type mutant struct {
	name     string
	file     string // below the root of the library's module
	old, new string // old stands in the file exactly once
	by       check
}

// tier is where a mutant is found, the cheapest first.
type tier string

const (
	models tier = "models" // a search of a model that uses the code's own decisions
	unit   tier = "unit"   // the tests of one package
	suites tier = "suite"  // of what all strategies or locks promise
)

// check are the tests that find a mutant.
type check struct {
	tier tier
	dir  string // of the package, below the root
	test string // expression of their names
}

func model(test string) check       { return check{models, "internal/protocol", test} }
func lockless(test string) check    { return check{models, "internal/lockless", test} }
func test(dir, test string) check   { return check{unit, dir, test} }
func suite(name, test string) check { return check{suites, "internal/suite/" + name, test} }

// command is the command of the check, for package go: with the overlay of that name.
// Without one its result may be of an earlier run.
func (c check) command(overlay string) []string {
	args := []string{"test", "-vet=off", "-failfast", "-timeout", limit.String(), "-run", c.test}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	return append(args, module+"/"+c.dir)
}

// mutants are all of them, by package.
func mutants() []mutant {
	return slices.Concat(ofConditions, ofVerdicts, ofDoubts, ofTransactions, ofOnce, ofQueues, ofLocks, ofLeases, ofAnswers, ofStrategies, ofTickets, ofSemaphores, ofJobs, ofCommands, ofPages)
}

// apply is the text of the file with the mutant in it.
func (m mutant) apply(text string) (string, error) {
	if n := strings.Count(text, m.old); n != 1 {
		return "", fmt.Errorf("stale mutant: its text is %d times in %s, and not once: adapt it to the code", n, m.file)
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}
