// Package exclusion shows, by its tests, what every kind of lock promises: one
// holder at a time, growing tokens, a successor for who died, and none of it
// disturbed by a bad network.
package exclusion
