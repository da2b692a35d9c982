// Soak runs the proofs again and again, each time with another seed, all tiers side by
// side, for as long as it is given:
//
//	go run ./internal/suite/soak -for 1h                      # all tiers
//	go run ./internal/suite/soak -for 10m -tiers updates,txn  # some
//	go run ./internal/suite/soak -for 1h -seed 7              # the same seeds as another run
//	go run ./internal/suite/soak -sum docs/results/soak.csv   # add all results up, and run nothing
//
// A tier is a test of this repository that takes a seed. Each run of one is a line on the
// output, with its seed, and a line of the file of results (-out), with what it has
// counted. The first run that fails ends all: its whole output is printed, and the
// command that repeats it. In virtual time the same seed repeats it exactly; where
// requests of several goroutines or processes race it narrows it down. The exit code is
// then 1.
//
// -sum adds up the files of results in one table, from which docs/reliability.md is made:
// results of several machines and days are one.
package main
