// Package compare measures the strategies on a workload and advises which one
// to take.
//
// [Measure] lets every mode work in turn, several rounds of it, so that what
// disturbs the machine for a moment does not fall on one mode alone. [Advise]
// judges the figures by rules that are written down in rules.go: first what
// must not be, then who is best. A [Report] holds both, and is written as a
// table, as JSON, or as a page.
package compare
