// Package repo is the vocabulary of Dynahold: what a repository is, how a Go
// struct maps to the items of a DynamoDB table, and which errors there are.
// Packages nolock, optimistic and pessimistic implement [Repository].
//
// # Promise
//
// Whatever strategy runs beside whatever other on one item: no Update is lost or applied
// twice, and every call ends in a true verdict (applied, not applied, [ErrOutcomeUnknown]).
//
// # Items
//
// T is a struct with dynamodbav tags. A second tag names roles:
//
//	repo:"pk"         partition key: string, number or bytes
//	repo:"sk"         sort key, for tables that have one
//	repo:"version"    integer that grows by one with every data write
//	repo:"eventtime"  when the event happened: integer, or a time with the option unixtime
//	repo:"eventid"    tie-break between events of the same time
//	repo:"type=NAME"  string that names the item's type, where several share a table
//	repo:"created"    when the item was made: a time.Time, or an integer of 64 bits
//	repo:"updated"    when it was changed last
//	repo:"unique"     no other item has it, unless it is zero; unique=NAME: nor all of NAME
//
// Options: of keys that are strings prefix=TEXT, as in repo:"pk,prefix=ORDER#"; of created
// and updated that are integers unit=s (default), ms, us or ns since 1970.
//
// A change of a unique string, number or bytes claims it by a row, in one transaction: see
// docs/protocol.md. The partition key must be no number; nolock and Apply refuse.
//
// Only the attributes that T maps are written; others are kept, on the item's top level,
// and the library's own, named by [Attributes]. A time.Time is no key: its text does not sort.
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
// Reads are consistent, but of an index, and with [Eventually]; of a locked item, what was
// committed last. One that cannot be read is an [*ItemError], but with [Unreadable].
//
// # Contexts and errors
//
// A context governs waiting and sending. Cancelled in the middle of a write, one short
// attempt on a detached context finds out what became of it. Errors have no values but keys.
package repo
