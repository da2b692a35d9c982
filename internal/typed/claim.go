package typed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Claiming is a write of one item that changes what the item claims: the item and the
// claims are written in one transaction.
type Claiming struct {
	Table    *Table
	Settings lock.Settings
	Key      repo.Key
	Raw      ddb.Item // the key, encoded
	Base     ddb.Item // as read; empty: there is none
	Now      ddb.Item // as it is to be; empty: deleted
	Count    int64    // changes that the write stands for
	// IfFree demands that nobody holds the item but the caller, who goes on to hold it; nil:
	// nobody, or Turn.
	IfFree func(*protocol.Write)
	Turn   any // the *local.Turn that holds the item's lock, whose end the caller has begun; nil: none is held
}

// ErrMoved is why a [Claiming] was not written: the item was not as it was read.
var ErrMoved = errors.New("others wrote the item first")

// claim writes a Claiming; image is the item that has refused it, with ErrMoved.
var claim func(ctx context.Context, c Claiming) (image ddb.Item, err error)

// SetClaim is called by package internal/transaction, once, when the program starts.
func SetClaim(f func(context.Context, Claiming) (ddb.Item, error)) { claim = f }

// Write writes the item and its claims.
func (c Claiming) Write(ctx context.Context) (image ddb.Item, err error) { return claim(ctx, c) }

// CheckClaims refuses a type with unique attributes in a program that has no transactions.
func CheckClaims(t *Table) error {
	if len(t.Core.Unique.All) > 0 && claim == nil {
		return fmt.Errorf("%w: %q is unique, which takes transactions: use package pessimistic, whose Locker is the same, or import package txn", repo.ErrConfig, t.Core.Unique.All[0].Name)
	}
	return nil
}

// Claims reports whether an edit of an item changes what it claims, and what the item is
// then. Nothing is asked of the values where the edit does not touch them.
func (e *Edit) Claims(core *protocol.Core, base, raw ddb.Item, count int64) (now ddb.Item, changed bool) {
	switch {
	case len(core.Unique.All) == 0:
		return nil, false
	case e.Remove:
		return nil, len(core.Claims(base)) > 0
	case !core.Hidden(base) && !slices.ContainsFunc(core.UniqueAttributes(), e.Diff.Has):
		return nil, false
	}
	now = After(core, base, raw, e.Diff, count)
	return now, core.ClaimsDiffer(base, now)
}

// After is what an item is after a difference, but for the evidence of the write; raw is
// its key, for one that is not there.
func After(core *protocol.Core, base, raw ddb.Item, d ddb.Diff, count int64) ddb.Item {
	if len(base) == 0 {
		base = raw
	}
	var ring protocol.WriteID // the write's own takes its place
	return ApplyTo(core, base, d, ring.Push(nil), count)
}
