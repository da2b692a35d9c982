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
// the others wait for it; [Try] does not, and gets repo.ErrLocked. A run that fails or panics releases the id. The effect itself
// can happen twice: a process that dies behind it leaves an id that is run again after
// its lease. Pass [Run] on: an outside service that knows the id does it once, one that
// compares tokens refuses the smaller one. A run that has lost its lease gets ErrLockLost
// or ErrLockExpired in the place of completing. An id is remembered for
// TableConfig.Remember (1 h). tx.Require(run) binds a transaction to the lease.
//
// An id has no owner. That of a message of a queue is taken as it is. What a client
// chooses goes together with the client: customer + "/" + key. A fingerprint of the
// request ([Store.WithFingerprint]) tells two apart that come with one id all the same.
//
// # Results
//
// All callers, the first one too, get what attributevalue decodes of what it encoded: a
// time has no monotonic clock, and nil may have become empty. What does not survive that
// is refused, never given as a zero. By its type, before anything is sent
// (repo.ErrSchema): if it has, at any depth,
//
//   - an unexported field without the tag `dynamodbav:"-"`, or two fields of one name;
//   - a channel, function, complex number, uintptr, unsafe pointer, or an interface with
//     methods, such as error;
//   - a map whose keys are no texts, numbers or bools and do not encode themselves;
//   - a [][]byte without the tag binaryset, for its encoding has no order.
//
// A type that encodes itself may have all of that. By its value, after fn ([ErrNoResult]):
// if DynamoDB does not take it, such as NaN, an empty set, 33 levels or 396 KB, or if it
// differs when it was decoded and encoded again. That is no failure of the operation: the
// id is completed without the result.
//
// # Costs
//
// The first call is two requests of a write unit each for a result under 1 KB, a
// repetition or a refused Try one; a caller that waits sends one each time it asks.
//
// # Errors
//
// The error of fn comes back as it is. repo.ErrKey: the id is empty, or has more than
// 2,048 bytes. repo.ErrMismatch: another fingerprint; fn has not run. repo.ErrLocked:
// another runs the id, and the waiting ended, or it was a Try. [ErrNoResult]: completed,
// without a result that fits. repo.ErrOutcomeUnknown: fn has returned, and whether that is
// known to others nobody can tell; the same call tells, or runs it again.
//
// The idea is that of Stripe ("Designing robust and predictable APIs with idempotency",
// 2017) and of AWS Lambda Powertools. How it works: docs/protocol.md, "Rows of once".
package once
