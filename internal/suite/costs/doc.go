// Package costs measures, by its tests, what calls cost, and compares it with
// what the documents say: requests, capacity units and permissions. Its
// benchmarks measure time, memory and the requests of those who wait.
package costs
