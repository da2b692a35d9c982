// Package once runs an operation with effects outside DynamoDB, such as a payment, once
// for each id, and gives its result to whoever brings the id again.
//
//	receipt, err := once.Do(ctx, payments, order.ID, func(ctx context.Context, run once.Run) (Receipt, error) {
//		return provider.Charge(ctx, order.Amount, run.ID) // the provider knows the id too
//	})
//
// For a change of an item of a repository take Once(id) of its strategy, and for
// several items txn.Once: there id and change are one write, and nothing can come
// between them.
//
// # Promise
//
// At most one run of an id is completed, and all callers get its result. While one runs,
// the others wait for it. A run that fails or panics releases the id, so that it can be
// tried again, by whoever waits or comes later.
//
// The effect itself can happen twice: nothing outside DynamoDB is written together with
// the row, so a process that dies behind the effect, and before its completion, leaves
// an id that is run again when its lease is over. Pass [Run] on: an outside
// service that knows the id as an idempotency key does it once, one that compares
// tokens refuses the smaller one. A run that has lost its lease, because its process
// stood still, gets ErrLockLost or ErrLockExpired in the place of completing: its context
// ends before, and another may be at work. This is the difference from libraries that
// complete without a condition: there, the result of whoever comes last is kept.
//
// A transaction (package txn) inside a run is applied only while the run has its lease if
// it requires it: tx.Require(run).
//
// An id is remembered for TableConfig.Remember (1 h by default), counted from its
// completion. After that it is a new one. What stands under an id that was completed is
// removed by TTL then; an id whose process died stays until it comes again.
//
// # Ids
//
// An id has no owner: two requests with the same id are one operation, whoever sends
// them. That of a message of a queue is taken as it is. What a client chooses, such as an
// idempotency key, goes together with the client: customer + "/" + key. A fingerprint of
// the request ([Store.WithFingerprint]) tells two apart that come with one id all the same.
//
// # Results
//
// A result is kept as attributevalue encodes it, with the options of Config.Table. All
// callers get what is decoded of that, the first one too. So a time has no monotonic
// clock and may have another location, and nil may have become empty, or the reverse.
//
// What does not survive that is refused, never given as a zero. By its type, before
// anything is sent (repo.ErrSchema): if it has, at any depth,
//
//   - a field that is unexported, and has not the tag `dynamodbav:"-"`, by which its owner says
//     that results go without it; with that tag any field is left out;
//   - two fields of one name, of which one may be in an embedded struct;
//   - a channel, function, complex number, uintptr or unsafe pointer;
//   - an interface with methods, such as error;
//   - a map whose keys are no texts, numbers or bools and do not encode themselves;
//   - a [][]byte that has not the tag binaryset, for its encoding has no order.
//
// A type that encodes and decodes itself may have all of that. By its value, after fn
// ([ErrNoResult] with repo.ErrSchema): if the result cannot be encoded; if DynamoDB does
// not take it (infinities and NaN, magnitudes beyond 1e-130 and 1e126, more than 38
// digits, sets that are empty or have an element twice, texts that are not UTF-8, more
// than 32 levels); if it cannot be decoded; if what was decoded is encoded to something
// else; or if it differs, field by field: an interface must get back the type that it
// had, so a float64 and no int. Such a result, and one of more than 396 KB
// (repo.ErrTooLarge), is no failure of the operation: the id is completed without it.
//
// # Protocol
//
// The row of an id is the item lock (package lockedread): the run acquires it, with the
// row if there is none, and renews its lease. To complete it is to leave the lock in
// place, until the id may be forgotten, with the result and the token of the run beside
// it: one write, on the condition that the lock is still the run's own. It can be sent
// any number of times. Whoever finds a lock with the result of its own holder is done;
// whoever finds another waits for it. A release deletes the row.
//
// # Costs
//
// The first call is two requests, one that acquires and one that completes, and bills
// two write units for a result under 1 KB. A repetition is one, which bills one write
// unit per KB of the result. A caller that waits sends one for each look. A run longer
// than a third of the lease renews it.
//
// # Errors
//
// The error of fn comes back as it is. repo.ErrKey: the id is empty, or has more than
// 2,048 bytes. repo.ErrMismatch: the id was completed for a request with another
// fingerprint; fn has not run. repo.ErrLocked: another runs the id, and ctx or Config.Wait ended the
// waiting. repo.ErrSchema alone: results of this type are not kept; nothing was sent.
// [ErrNoResult]: completed, but there is no result to return, or what is kept does not fit
// the type that is asked for (repo.ErrSchema beside it). repo.ErrOutcomeUnknown: fn has
// returned, and whether that is known to others nobody can tell; the same call tells, or
// runs it again.
//
// # Sources
//
// Idempotency keys with stored results are those of Stripe's API ("Designing robust and
// predictable APIs with idempotency", 2017) and of AWS Lambda Powertools. The lease, the
// token, and the condition of the completion are this module's.
package once
