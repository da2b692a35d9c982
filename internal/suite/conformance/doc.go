// Package conformance shows, by its tests, what every strategy promises beside
// generics_test.go: cancellation, items that cannot be read, events and
// tombstones, endpoints that behave otherwise, and tables.
package conformance
