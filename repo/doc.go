// Package repo is the vocabulary of Dynahold: what a repository is, how a Go
// struct maps to the items of a DynamoDB table, and which errors there are.
// Packages nolock, optimistic and pessimistic implement [Repository].
//
// # Promise
//
// Whatever strategy runs beside whatever other on one item: no Update is ever
// lost, none is applied twice, and every call ends in a true verdict (applied,
// not applied, or [ErrOutcomeUnknown]).
//
// # Items
//
// T is a struct with dynamodbav tags. A second tag names roles:
//
//	repo:"pk"         partition key: string, number or bytes
//	repo:"sk"         sort key, for tables that have one
//	repo:"version"    integer that grows by one with every data write
//	repo:"eventtime"  integer, or a time of whole seconds (time.Time with the
//	                  option unixtime, attributevalue.UnixTime): when the event happened
//	repo:"eventid"    tie-break between events of the same time
//	repo:"type=NAME"  string that names the item's type, where several share a table
//	repo:"created"    when the item was made: a time.Time, or an integer of 64 bits
//	repo:"updated"    when it was changed last
//
// Options: of keys that are strings prefix=TEXT, as in repo:"pk,prefix=ORDER#"; of created
// and updated that are integers unit=s (default), ms, us or ns since 1970.
//
// Only the attributes that T maps are written; others are kept, on the top level of the
// item. Beside them stand the library's own, named by [Attributes]; they never reach T.
// A time.Time as a key does not sort by time: use an integer.
//
// created is set when an item is made, updated by each write that counts the version, by
// the clock of the process. A change that alters them, or the type, is ErrFixed. Several
// types in one table: docs/tables.md.
//
// # Other encodings
//
// [TableConfig] takes the options of attributevalue, as for the tags of another mapper:
//
//	cfg := repo.TableConfig{
//		EncoderOptions: func(o *attributevalue.EncoderOptions) { o.TagKey, o.UseEncodingMarshalers = "dynamo", true },
//		DecoderOptions: func(o *attributevalue.DecoderOptions) { o.TagKey, o.UseEncodingUnmarshalers = "dynamo", true },
//	}
//	_, err := repo.NewTable[order](client, "orders", cfg)
//
// # Reads
//
// By key (Get, GetMany), by partition (Query, Page), as a whole (Scan), or by an index:
//
//	for order, err := range orders.Query(ctx, "ann", repo.Index("byCustomer", "customer", "placed"), repo.Descending(), repo.Limit(10)) {
//
// Reads are consistent, but of an index, and with [Eventually]. A locked item is read as it
// was committed last. An item that cannot be read is an [*ItemError], but with [Unreadable].
//
// # Contexts and errors
//
// A context governs waiting and sending. Cancelled in the middle of a write, one short
// attempt on a detached context finds out what became of it. Errors are sentinels for
// "which" and structs for "who and until when"; they have keys, and no other values.
package repo
