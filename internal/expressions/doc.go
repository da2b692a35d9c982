// Package expressions puts a user's update, which is an expression, under the marks of the
// protocol: what it may not change, and what a write demands that has not read its item.
package expressions
