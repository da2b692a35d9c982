// Package load shows, by its tests, that the harness of internal/load can be
// believed: what it measures is what was done, a strategy that loses, doubles or
// halves changes is found, and virtual time gives the same figures each time.
package load
