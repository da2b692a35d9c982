package main

import "github.com/dynahold/dynahold/internal/load"

// The contenders of each kind of scenario. With the first of them the others are
// compared.

// counting are the peers, and every mode of this library, for changes of one item.
func counting() []load.Contender {
	return append([]load.Contender{article(), version(), guregu()}, load.Modes()...)
}

// moving are those for changes of several items.
func moving() []load.Contender {
	return append([]load.Contender{byTransactions(), byLocks(), guregusTransactions()}, transactional()...)
}
