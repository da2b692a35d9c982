package once

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// ErrNoResult is the error of a call whose operation was completed, but whose result was
// not kept: it does not survive its encoding (repo.ErrSchema beside it), DynamoDB does not
// take it (the same), or it does not fit into an item (repo.ErrTooLarge). The run that has
// made it returns it beside the error; every later call has the same errors.
var ErrNoResult = telemetry.NoResult

// Run is what a run can pass on, so that an outside service does its part once. A
// transaction can require it, by txn.Tx.Require.
type Run struct {
	ID    string
	Token int64 // fencing token: greater than those of all runs of the id before, as far as they could still be at work

	lock *lock.Lock
}

// Format prints the id and the token.
func (r Run) Format(f fmt.State, _ rune) { redact.Exported(f, "once.Run", r) }

// Do returns the result of the operation of an id: that of an earlier run, or that of fn,
// which runs if there is none. It waits, as long as ctx allows, while another run of the
// id is under way. See the package documentation.
//
// The context of fn ends with ctx, and, with the cause, when the lease is lost. If fn
// fails, or panics, the id is released and the error returned.
func Do[T any](ctx context.Context, s *Store, id string, fn func(ctx context.Context, run Run) (T, error)) (T, error) {
	return do(ctx, s, "Do", id, fn)
}

// Try is Do without the waiting, for one who has other things to do, such as the next tick of
// a schedule: where another run of the id is under way, the error is at once repo.ErrLocked,
// and [repo.LockedError] says whose, and when it ends at the latest if nobody renews it. One
// that has passed its end is taken over, as by Do; where that has completed the id, its
// result is returned.
func Try[T any](ctx context.Context, s *Store, id string, fn func(ctx context.Context, run Run) (T, error)) (T, error) {
	return do(ctx, s, try, id, fn)
}

const try = "Try"

// do is the call of a name: the part of it that knows the type of the result.
func do[T any](ctx context.Context, s *Store, name, id string, fn func(ctx context.Context, run Run) (T, error)) (result T, err error) {
	if fn == nil {
		return result, fmt.Errorf("%w: the operation is nil", repo.ErrConfig)
	}
	got, err := s.do(ctx, name, id, reflect.TypeFor[T](), func(ctx context.Context, run Run) (reflect.Value, error) {
		made, err := fn(ctx, run)
		return reflect.ValueOf(&made).Elem(), err
	})
	if got.IsValid() {
		result = *got.Addr().Interface().(*T)
	}
	return result, err
}

// do returns a variable of the type of the result; the zero Value where there is none.
func (s *Store) do(ctx context.Context, name, id string, as reflect.Type, fn func(ctx context.Context, run Run) (reflect.Value, error)) (result reflect.Value, err error) {
	if err := s.check(as); err != nil {
		return result, err
	}
	key := repo.Key{Partition: id}
	raw, err := s.table.EncodeKey(key)
	if err != nil {
		return result, err
	}
	ctx, told := s.locker.Core.Observe.Call(ctx, telemetry.Once, name, key.String)
	defer told.End(&err)
	item := nesting.ItemOf(s.locker.Core.Table, raw)
	if name != try { // which does not wait for itself either
		if err := nesting.Wait(ctx, item, key); err != nil {
			return result, err
		}
	}
	// What TTL is to remove is of a run that is forgotten.
	hold, row, err := s.locker.Acquire(ctx, key, raw, lock.Request{Try: name == try, Row: true, NoTTL: true, Claim: s.claim, Needless: s.needless})
	var made *completed
	switch {
	case errors.As(err, &made):
		return s.readResult(id, as, made)
	case errors.Is(err, repo.ErrMismatch):
		return result, fmt.Errorf("id %q: %w", id, err)
	case err != nil:
		return result, err
	case !s.locker.Core.LockOnly(row, attrDone, attrResult, attrReason, attrRequest):
		_, _ = hold.End(ctx, lock.End{As: lock.Release}) // a run that fails, or is forgotten, would delete it
		return result, fmt.Errorf("%w: %s is not a row of package once: it needs a table of its own", repo.ErrSchema, s.locker.Core.ItemName(key))
	}
	done := false
	defer func() {
		if !done { // also if fn panics; where it fails, the lock ends with its lease
			_, _ = hold.End(ctx, lock.End{As: lock.Drop})
		}
	}()
	inner, cancel := ddb.Merge(ctx, hold.Context())
	defer cancel()
	if result, err = fn(nesting.Holding(inner, item, "", hold.Cause), Run{id, hold.Token(), hold}); err != nil {
		return reflect.Value{}, nesting.Returned(err) // of another call, which is no verdict on this one
	}
	done = true // whatever comes of it: fn has done its work
	kept, read, why := s.coding.keep(result)
	if why == nil {
		result = read // as others get it
	}
	if why, err = s.complete(ctx, hold, kept, why); err != nil {
		return reflect.Value{}, err
	}
	if why != nil {
		return result, fmt.Errorf("id %q: %w", id, why)
	}
	return result, nil
}

// check refuses a call before anything is sent.
func (s *Store) check(result reflect.Type) error {
	if s == nil || s.coding == nil {
		return fmt.Errorf("%w: the store is nil, or not from New", repo.ErrConfig)
	}
	if err := s.coding.facts(result).err; err != nil {
		return err
	}
	return s.checkRequest()
}

// completed is what ends the waiting for a run: another has completed the id.
type completed struct{ result, reason types.AttributeValue }

func (*completed) Error() string { return "the operation was completed" }

// needless is why there is nothing to wait for, by the row of the run that has its lock.
func (s *Store) needless(row ddb.Item) error {
	if err := s.isOther(row); err != nil {
		return err
	}
	if !s.isDone(row) {
		return nil
	}
	return &completed{row[attrResult], row[attrReason]}
}

// isDone reports whether a row shows the result of the run that has its lock.
func (s *Store) isDone(row ddb.Item) bool {
	return ddb.Equal(row[attrDone], row[s.locker.Core.Attr.LockHeld])
}

// complete leaves the lock of a run in its row, with its result, or why there is none:
// DynamoDB may have the last word in that.
func (s *Store) complete(ctx context.Context, hold *lock.Lock, result types.AttributeValue, why *unkept) (*unkept, error) {
	ctx, cancel := ddb.Cleaning(ctx) // what fn has done is done, also if ctx has ended meanwhile
	defer cancel()
	core := s.locker.Core
	end := s.locker.Clock().Add(core.Retention)
	err := hold.Leave(ctx, func(w *protocol.Write, refused error) {
		if refused != nil {
			result, why = nil, unkeptBy(refused)
		}
		w.Set(attrDone, ddb.Integer(hold.Token()))
		if result == nil {
			w.Remove(attrResult) // of a run that is forgotten
			w.Set(attrReason, ddb.Text(why.reason()))
		} else {
			w.Set(attrResult, result)
		}
		w.Set(core.Attr.LockTime, ddb.Number(ddb.Seconds(end)))
		w.Set(core.Attr.LockLease, ddb.Number(ddb.LeaseSeconds(core.Retention)))
		w.Set(core.Attr.TTL, ddb.Integer(end.Add(s.locker.Skew+time.Second).Unix()))
	}, func(row ddb.Item) protocol.Verdict { return madeBy(row, hold.Token()) })
	return why, err
}

// madeBy tells from a row whether the run of a token has completed the id: each leaves its
// own, which is there until a later one does.
func madeBy(row ddb.Item, token int64) protocol.Verdict {
	done, err := ddb.Int(row[attrDone])
	switch {
	case err == nil && done == token:
		return protocol.Committed
	case err == nil && done > token, len(row) == 0:
		return protocol.Undecided
	}
	return protocol.Lost
}

// readResult is the result of a run that has completed the id.
func (s *Store) readResult(id string, as reflect.Type, made *completed) (result reflect.Value, err error) {
	if made.result == nil {
		err = whyNone(made.reason)
	} else {
		result, err = s.coding.decode(as, made.result)
	}
	if err != nil {
		err = fmt.Errorf("id %q: %w", id, err)
	}
	return result, err
}
