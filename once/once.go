package once

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// ErrNoResult is the error of a call whose operation was completed, but whose result was
// not kept: it could not be encoded, or does not fit into an item. The run that has made
// it returns it beside the error.
var ErrNoResult = telemetry.NoResult

// Run is what a run can pass on, so that an outside service does its part once. A
// transaction can require it, by txn.Tx.Require.
type Run struct {
	ID    string
	Token int64 // fencing token: greater than those of all runs of the id before, as far as they could still be at work

	lock *lock.Lock
}

// Do returns the result of the operation of an id: that of an earlier run, or that of fn,
// which runs if there is none. It waits, as long as ctx allows, while another run of the
// id is under way. See the package documentation.
//
// The context of fn ends with ctx, and, with the cause, when the lease is lost. If fn
// fails, or panics, the id is released and the error returned.
func Do[T any](ctx context.Context, s *Store, id string, fn func(ctx context.Context, run Run) (T, error)) (result T, err error) {
	if fn == nil {
		return result, fmt.Errorf("%w: the operation is nil", repo.ErrConfig)
	}
	key := repo.Key{Partition: id}
	raw, err := s.table.EncodeKey(key)
	if err != nil {
		return result, err
	}
	ctx, told := s.locker.Core.Observe.Call(ctx, telemetry.Once, "Do")
	told.Key(key.String)
	defer told.End(&err)
	// What TTL is to remove is of a run that is forgotten.
	hold, _, err := s.locker.Acquire(ctx, key, raw, lock.Request{Row: true, NoTTL: true, Needless: s.completed})
	var made *completed
	switch {
	case errors.As(err, &made):
		return decode[T](id, made.result)
	case err != nil:
		return result, err
	}
	done := false
	defer func() {
		if !done { // also if fn panics; where it fails, the lock ends with its lease
			_, _ = hold.End(ctx, lock.End{As: lock.Drop})
		}
	}()
	inner, cancel := ddb.Merge(ctx, hold.Context())
	defer cancel()
	if result, err = fn(inner, Run{id, hold.Token(), hold}); err != nil {
		var zero T
		return zero, err
	}
	done = true // whatever comes of it: fn has done its work
	kept, why := encode(result)
	if err := s.complete(ctx, hold, kept); err != nil {
		var zero T
		return zero, err
	}
	return result, why
}

// completed is what ends the waiting for a run: another has completed the id.
type completed struct{ result types.AttributeValue }

func (*completed) Error() string { return "the operation was completed" }

// completed says so of a row that shows the result of the run that has its lock.
func (s *Store) completed(row ddb.Item) error {
	if !ddb.Equal(row[attrDone], row[s.locker.Core.Attr.LockHeld]) {
		return nil
	}
	return &completed{row[attrResult]}
}

// complete leaves the lock of a run in its row, with its result.
func (s *Store) complete(ctx context.Context, hold *lock.Lock, result types.AttributeValue) error {
	ctx, cancel := ddb.Cleaning(ctx) // what fn has done is done, also if ctx has ended meanwhile
	defer cancel()
	core := s.locker.Core
	end := s.locker.Clock().Add(core.Retention)
	return hold.Leave(ctx, func(w *protocol.Write) {
		w.Set(attrDone, ddb.Integer(hold.Token()))
		if result == nil {
			w.Remove(attrResult) // of a run that is forgotten
		} else {
			w.Set(attrResult, result)
		}
		w.Set(core.Attr.LockTime, ddb.Number(ddb.Seconds(end)))
		w.Set(core.Attr.LockLease, ddb.Number(ddb.LeaseSeconds(core.Retention)))
		w.Set(core.Attr.TTL, ddb.Integer(end.Add(s.locker.Skew+time.Second).Unix()))
	})
}

// maxResult is how many bytes a result may have: an item, less its key and its lock.
const maxResult = 396 << 10

// encode is a result as it is kept; nil, and why, if it cannot be.
func encode(result any) (_ types.AttributeValue, err error) {
	defer func() { // what fn has done is done: it must not run again
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %w: %T cannot be encoded: %v", ErrNoResult, repo.ErrSchema, result, p)
		}
	}()
	kept, err := attributevalue.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: %w", ErrNoResult, repo.ErrSchema, err)
	}
	if size := protocol.Size(ddb.Item{"": kept}); size > maxResult {
		return nil, fmt.Errorf("%w: %w: it has about %d bytes, at most %d are kept", ErrNoResult, repo.ErrTooLarge, size, maxResult)
	}
	return kept, nil
}

func decode[T any](id string, kept types.AttributeValue) (result T, err error) {
	if kept == nil {
		return result, fmt.Errorf("id %q: %w", id, ErrNoResult)
	}
	var zero T
	defer func() { // bytes that are longer than the array they are for, for example
		if p := recover(); p != nil {
			result, err = zero, fmt.Errorf("%w: id %q: the result that is kept does not fit %T: %v", repo.ErrSchema, id, zero, p)
		}
	}()
	if err := attributevalue.Unmarshal(kept, &result); err != nil {
		return zero, fmt.Errorf("%w: id %q: the result that is kept does not fit %T: %w", repo.ErrSchema, id, zero, err)
	}
	return result, nil
}
