// Package faults shows, by its tests, that verdicts are true: under a client
// that breaks a quarter of its requests, in recorded histories, in processes
// that are killed, and in each single case that was judged wrong once.
package faults
