package main

import (
	"strings"

	"github.com/dynahold/dynahold/internal/load"
)

// The contenders of each kind of scenario. With the first of them the others are
// compared.

// counting are the peers, and every mode of this library, for changes of one item.
func counting() []load.Contender {
	return append(append([]load.Contender{article(), version(), guregu()}, load.Modes()...), load.ShortSleeps(), delegating(0))
}

// peers are the names of everybody else, whatever they take part in.
func peers() []string {
	names := []string{putDelete, getPutDelete, heartbeat, recordTogether}
	for _, c := range []load.Contender{article(), version(), guregu(), byTransactions(), byLocks(), guregusTransactions(), unprotected()} {
		names = append(names, c.Name)
	}
	for _, c := range handlers() {
		if strings.HasSuffix(c.Name, recordByHand) {
			names = append(names, c.Name)
		}
	}
	return names
}

// moving are those for changes of several items.
func moving() []load.Contender {
	return append([]load.Contender{byTransactions(), byLocks(), guregusTransactions()}, transactional()...)
}
