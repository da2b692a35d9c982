// Package wire states what goes over the wire: testdata/wire.golden has one
// block for each public operation, with every request that it sends, alone and
// after the answer of each of them was lost. It is reviewed like code.
//
//	go test ./internal/suite/wire -update
//
// writes it anew. Expressions are written out with the names and values that
// they stand for. Ids, times, tokens and table names are replaced, attributes
// are sorted, and a request that says the same as an earlier one of its
// operation is called by the number of that one.
package wire
