package main

// tier is a test that takes a seed.
type tier struct {
	name string
	what string // is shaken, as the table says it
	in   string // the package, from the root
	run  string // the tests
	seed string // the flag of the seed; "" if the test makes its own, and prints it
	args []string
	full bool // it runs as with DYNAHOLD_PROOF=full
}

var tiers = []tier{
	{name: "updates", what: "changes of all strategies, a quarter of all requests broken", in: "./internal/suite/faults", run: "FaultedUpdates", seed: "-seed", args: []string{"-rounds=1"}},
	{name: "histories", what: "histories of one item, faulted: linearizability", in: "./internal/suite/faults", run: "FaultedHistories", seed: "-seed", args: []string{"-rounds=1"}},
	{name: "late", what: "few attempts, callers that are each other's evidence", in: "./internal/suite/faults", run: "Late|Unknown|Witness", seed: "-seed"},
	{name: "transactions", what: "transactions with reads, faulted: strict serializability", in: "./txn", run: "^TestHistory$", seed: "-seed", full: true},
	{name: "messages", what: "messages that come again, all settings mixed", in: "./internal/suite/once", run: "^TestMessageStorm$", seed: "-seed"},
	{name: "answers", what: "answers that are not DynamoDB's", in: "./internal/suite/answers", run: "^TestFalseAnswers$", seed: "-seed"},
	{name: "locks", what: "all kinds of lock, faulted: exclusion", in: "./internal/suite/exclusion", run: "UnderFaults", seed: "-seed"},
	{name: "clocks", what: "clients with other clocks and pauses past the lease, in virtual time", in: "./lockedread", run: "^TestVirtualDays$", seed: "-seed", full: true},
	{name: "nights", what: "a table's stream and what callers were told, judged by dynahold verify", in: "./cmd/dynahold", run: "^TestVerifyNight$", seed: "-seed", args: []string{"-nightrounds=200"}},
	{name: "commands", what: "commands, one request of a run broken, others at the item", in: "./internal/suite/delegated", run: "^Test(OneAccident|OthersChangeTheItem|TheItemGoes|ProgramsDiffer)$", seed: "-seed"},
	{name: "killed", what: "processes killed that combine, hold or wait", in: "./internal/suite/faults", run: "Killed"},
	{name: "chain", what: "processes killed and stopped inside changes", in: "./examples/hashchain", run: "Killed", seed: "-killseed", args: []string{"-killrounds=3"}},
	{name: "leader", what: "leaders killed and stopped", in: "./examples/leader", run: "Killed", seed: "-killseed", args: []string{"-killrounds=3"}},
	{name: "jobs", what: "dispatchers killed and stopped", in: "./examples/deployments", run: "Killed", seed: "-killseed", args: []string{"-killrounds=3"}},
}
