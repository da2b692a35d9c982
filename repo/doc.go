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
//	repo:"version"    integer that grows by one with every data write; at the greatest
//	                  of its type, and of int64, writes are refused (ErrSchema)
//	repo:"eventtime"  integer, or a time of whole seconds (time.Time with the
//	                  option unixtime, attributevalue.UnixTime): when the event happened
//	repo:"eventid"    tie-break between events of the same time
//	repo:"type=NAME"  string that names the item's type, where several share a table
//	repo:"created"    when the item was made: a time.Time, or an integer of 64 bits
//	repo:"updated"    when it was changed last
//
// Options: of keys that are strings prefix=TEXT, as in repo:"pk,prefix=ORDER#"; of
// created and updated that are integers unit=s, ms, us or ns, the step since 1970
// (default s).
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
// # Several types in one table
//
// The role type=NAME has the library write NAME into its field when an item is made,
// and demand it with every other call: the condition of a write names it, and what was
// read is checked, with no request more. An item of another type, or of none, is a
// [*TypeError] (ErrSchema) for every call that names its key, and nothing is written.
// What looks for items leaves it out: Query, Page, Scan and Index, by a filter that
// DynamoDB applies (it bills what it reads), and Images. A Query with a Limit then
// reads pages that double, so that few among many cost few requests. Stubs and
// tombstones are of no type: what deletes an item of one type leaves its key to any.
//
// A prefix of a key stands in the table only: T and every [Key], also in errors, have
// the bare id, SortPrefix and SortBetween count from behind it, and a Query that does
// not narrow the sort key reads the items with T's prefix alone. A [KeyTable], and so a
// tool that knows no T, has keys as they are stored.
//
// # Times
//
// created is set by Create, an Upsert of a new item, and the event that makes an item
// (an event that finds an item without it sets it, too); no later write changes it.
// updated is set by each write that counts the version, not by a change that leaves
// everything as it was. Both are of the clock of the process. What a caller gives for
// them is not used; a change that alters them, or the type, is ErrFixed.
//
// # Other encodings
//
// [TableConfig] takes the options of attributevalue: for the tags of another mapper,
// and for types that encode themselves as texts.
//
//	cfg := repo.TableConfig{
//		EncoderOptions: func(o *attributevalue.EncoderOptions) { o.TagKey, o.UseEncodingMarshalers = "dynamo", true },
//		DecoderOptions: func(o *attributevalue.DecoderOptions) { o.TagKey, o.UseEncodingUnmarshalers = "dynamo", true },
//	}
//	_, err := repo.NewTable[order](client, "orders", cfg)
//
// Tags of another mapper whose meaning would be lost in writing are ErrSchema:
// docs/migration.md names them, and what to write in their place.
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
// read as it was committed last. Stubs, tombstones and items of other types never come
// out. One that cannot be read is an [*ItemError] and ends the reading, but with
// [Unreadable].
//
// # Contexts and errors
//
// A context governs waiting and sending. Cancelled in the middle of a write,
// one short attempt on a detached context finds out what became of it. Errors
// are sentinels for "which" and structs for "who and until when"; use
// errors.Is and errors.As. They have keys of items, and never other values.
package repo
