package verify

import "github.com/dynahold/dynahold/internal/stored"

// The names of the rules, as reports and documents have them.
const (
	RuleVersion = "version" // versions grow, by the changes of one write
	RuleWriters = "writers" // an id of a write comes once, and the evidence before it stays
	RuleTokens  = "tokens"  // fencing tokens grow
	RuleLease   = "lease"   // nobody takes over before a lease is over
	RuleRight   = "right"   // who writes holds the lock, or nobody does
	RuleOnce    = "once"    // an operation's id comes once, and is not forgotten early
	RuleCommand = "command" // delegated commands of a sender are carried out once, in order
	RuleUnique  = "unique"  // a value is claimed by the item that has it
	RuleVerdict = "verdict" // what a caller was told is what happened
	RuleTwice   = "twice"   // a call has changed an item once
	RuleWhole   = "whole"   // a transaction has written all of its items, or none
)

// rules are asked of every change, in this order. The first breach of an item is told, and
// the item is looked at no further: what follows rests on it.
var rules = []struct {
	name string
	ask  func(*step) string // "" where the change is allowed
}{
	{RuleVersion, (*step).version},
	{RuleWriters, (*step).writers},
	{RuleTokens, (*step).tokens},
	{RuleLease, (*step).lease},
	{RuleRight, (*step).right},
	{RuleOnce, (*step).once},
	{RuleCommand, (*step).commands},
}

// step is a change while it is judged.
type step struct {
	Change
	*item
	table *stored.Table
	cfg   *Config

	was, is  stored.Record
	ids      [][]byte // of writes, that stand on the item since this change
	data     bool     // an attribute that is not the library's has changed
	foreign  bool     // and no writer of the library's has done it, which is allowed
	counted  bool     // both images have a version
	old, now int64    // the versions
}
