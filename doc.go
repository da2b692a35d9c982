// Package dynahold makes concurrent changes to DynamoDB items safe.
//
// It holds no code of its own: start with package repo, which maps a struct to
// a table, and choose a strategy for each kind of item.
//
//   - pessimistic: changes of one item collide often, take long, or must not
//     run twice at once (stock, balances, workflows). Lock and read in one
//     request, commit and release in another. Others wait.
//   - optimistic: changes seldom collide, or items are larger than some 10 KB
//     (customer records, documents, settings). A read and one conditional
//     write. The change runs again after a conflict.
//   - nolock: items mirror events that carry their own time and arrive twice
//     or out of order (status messages, sensor readings). One request without
//     a read; older events are dropped.
//
// When in doubt take pessimistic. The strategies can be mixed on one item, at
// the same time, and lose nothing. Package txn changes several items, of any
// strategies, in one transaction. Package lockedread is the item lock below
// pessimistic, for code that wants a handle; package localdb is an embedded
// engine for demos and tests.
package dynahold
