// Package documents compiles, as its tests, the programs that the README, the
// package documents and docs show; readme_test.go, at the top, compares them.
package documents
