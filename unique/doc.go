// Package unique looks after the rows that keep values unique: a claim says which item has
// which value of an attribute with the role repo:"unique".
//
//	for finding, err := range unique.In(table.KeyTable).Repair(ctx) {
//
// Programs need it once, where the role is new to a table with items, and again where
// somebody has written who knows nothing of claims: by hand, or an older program. The tool
// does the same: dynahold unique.
//
// # Promise
//
// All of it may run beside writers, and again. What [Claims.Repair] changes, it changes in
// a transaction that demands the item and the claim as they were read: no claim is taken
// from an item that has the value. Two items with one value it tells, and changes neither.
//
// # Costs
//
// [Claims.List] scans the table. [Claims.Check] and [Claims.Repair] also read one row
// for each item with a value, and item and claim together where these do not agree. A
// mend is one transaction of two writes.
//
// # Errors
//
// repo.ErrConfig: the client has no method Scan, TransactGetItems or TransactWriteItems.
// repo.ErrSchema: a row looks like a claim and is none. repo.ErrConflict: others wrote the
// claim or the item 64 times meanwhile. repo.ErrOutcomeUnknown: a mend has no answer; repair
// again.
package unique
