// Package resources owns the row on which permits and jobs of a resource are counted: how
// it reads, its limit, its tokens, and what operators do to it. Permits (package
// semaphore) and jobs (package jobs) on one table count on the same rows, so both
// together stay below one limit. Package documents of both say what the rows are.
package resources
