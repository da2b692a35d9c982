// Package closing is how a client of locks, turns or permits is closed: its calls that may
// take something end first ([Gate]), then what it holds is given back ([Client]).
package closing
