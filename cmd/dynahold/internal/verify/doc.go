// Package verify says whether the protocol of the library allows what became of the items
// of a table: it reads their changes, as a DynamoDB stream has them, and names the first
// of each item that the protocol cannot have made.
//
// It sends nothing, and believes nobody: a rule looks at the two images of a change, and at
// what came before it. A rule whose evidence is not there says nothing.
package verify
