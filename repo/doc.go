// Package repo is the vocabulary of Dynahold: what a repository is, how a Go
// struct maps to the items of a DynamoDB table, and which errors there are.
// The strategies (packages nolock, optimistic, pessimistic) implement
// [Repository]; package lockedread is the item lock below pessimistic.
//
// # Promise
//
// Whatever strategy runs beside whatever other on one item: no Update is ever
// lost, none is applied twice, and every call ends in a true verdict (applied,
// not applied, or [ErrOutcomeUnknown]).
//
// # Items
//
// T is a struct with dynamodbav tags. A second tag names the roles of fields:
//
//	repo:"pk"         partition key: string, number or bytes
//	repo:"sk"         sort key, for tables that have one
//	repo:"version"    integer that grows by one with every data write
//	repo:"eventtime"  integer, or a time of whole seconds (time.Time with the
//	                  option unixtime, attributevalue.UnixTime): when the event happened
//	repo:"eventid"    tie-break between events of the same time
//
// A time.Time as a key is stored as text whose fractions vary in length, so it
// does not sort by time: use an integer.
//
// Only the attributes that T maps are written. Attributes that T does not know
// are kept, on the top level of the item: a nested struct is one attribute and
// is written whole.
//
// Beside them the library keeps attributes of its own on an item, named by
// [Attributes]. They never reach T.
//
// # Reads
//
// A table is read by key (Get, GetMany), by partition (Query, Page) or as a whole
// (Scan). The options of a query order, narrow, filter and bound it, and name a
// secondary index:
//
//	for order, err := range orders.Query(ctx, "ann", repo.Index("byCustomer", "customer", "placed"), repo.Descending(), repo.Limit(10)) {
//
// Reads are consistent, but of an index, and with [Eventually]. A locked item is
// read as it was committed last. Stubs and tombstones never come out.
//
// # Contexts and errors
//
// A context governs waiting and sending. Cancelled in the middle of a write,
// one short attempt on a detached context finds out what became of it. Errors
// are sentinels for "which" and structs for "who and until when"; use
// errors.Is and errors.As.
package repo
