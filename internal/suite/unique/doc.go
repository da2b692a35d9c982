// Package unique states what repo:"unique" promises, for every strategy that keeps it: no
// two items have one value, under faults, kills and races, and a value that its item has
// lost is free.
package unique
