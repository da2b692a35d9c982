package unique

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// Claims are those in one table. They are safe for concurrent use.
type Claims struct {
	keys *repo.KeyTable
	core *stored.Table
}

// In are the claims in a table: that of a type (its *repo.Table has a field KeyTable), or
// one that knows by WithUnique what is unique.
func In(table *repo.KeyTable) *Claims { return &Claims{table, link.Table(table)} }

// Claim is a row: the item with the key has a value of the field.
type Claim struct {
	Field string // with the type's name, or its keys' prefixes, before it
	Key   repo.Key
}

// State is what is wrong with a claim.
type State string

// What may be wrong.
const (
	Missing State = "missing" // an item has a value without a claim
	Double  State = "double"  // an item has a value that is claimed by another, which has it too
	Orphan  State = "orphan"  // a claim names an item that has not the value: it stands in nobody's way
)

// Finding is something that is wrong.
type Finding struct {
	Claim
	State State
	Owner repo.Key // of a double: the other item, which has the claim
	Done  bool     // it was mended
}

// List are all claims in the table, also of other types. It scans the table.
func (c *Claims) List(ctx context.Context) iter.Seq2[Claim, error] {
	return func(yield func(Claim, error) bool) {
		for raw, err := range c.scan(ctx) {
			var claim Claim
			if err == nil && !stored.IsClaim(raw) {
				continue
			}
			if err == nil {
				claim, _, err = c.read(raw)
			}
			if !yield(claim, err) {
				return
			}
		}
	}
}

// Check tells what is wrong, and writes nothing. It scans the table, and reads the claim of
// each item that must have one, and the item of each claim. It goes on behind a row that is
// no claim (ErrSchema), and what others write too often (ErrConflict); other errors end it.
func (c *Claims) Check(ctx context.Context) iter.Seq2[Finding, error] { return c.walk(ctx, false) }

// Repair is Check, and claims what items have without a claim, and deletes the claims that
// name items without the value: a transaction for each. Doubles it tells only: change one
// of the two items.
func (c *Claims) Repair(ctx context.Context) iter.Seq2[Finding, error] { return c.walk(ctx, true) }

func (c *Claims) scan(ctx context.Context) iter.Seq2[ddb.Item, error] {
	client, ok := c.core.Client.(ddb.Scanner)
	if !ok {
		return func(yield func(ddb.Item, error) bool) {
			yield(nil, fmt.Errorf("%w: the client has no method Scan: give it that of *dynamodb.Client", repo.ErrConfig))
		}
	}
	in := dynamodb.ScanInput{TableName: &c.core.Name, ConsistentRead: aws.Bool(true)}
	return c.core.Pages(ctx, "Scan", ddb.Options{}, ddb.Asked{}, func(ctx context.Context, start ddb.Item, o func(*dynamodb.Options)) (any, error) {
		in.ExclusiveStartKey = start
		return client.Scan(ctx, &in, o)
	})
}

func (c *Claims) walk(ctx context.Context, mend bool) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		for raw, err := range c.scan(ctx) {
			var found []Finding
			switch {
			case err != nil:
			case stored.IsClaim(raw):
				found, err = c.ofRow(ctx, raw, mend)
			case c.has(raw):
				found, err = c.ofItem(ctx, raw, mend)
			}
			for _, f := range found {
				if !yield(f, nil) {
					return
				}
			}
			if err != nil && (!yield(Finding{}, err) || !ofOne(err)) {
				return
			}
		}
	}
}

// ofOne reports whether an error is about one row, behind which a walk goes on: what fails
// otherwise, fails for all the others too, at a request each.
func ofOne(err error) bool {
	return errors.Is(err, repo.ErrSchema) || errors.Is(err, repo.ErrConflict) || errors.Is(err, repo.ErrOutcomeUnknown)
}

// has reports whether an item is one of the table's type: it has the type, and a key with
// the prefixes.
func (c *Claims) has(raw ddb.Item) bool {
	key, err := c.keys.EncodeKey(c.keys.DecodeKey(raw))
	return err == nil && c.core.KeyText(key) == c.core.KeyText(raw) && c.core.CheckType(raw) == nil
}

// read is what the row of a claim says.
func (c *Claims) read(row ddb.Item) (claim Claim, owner ddb.Item, err error) {
	claim.Field, owner, err = c.core.ClaimOf(row)
	if err != nil {
		return claim, nil, fmt.Errorf("%w: row of table %q: %w", repo.ErrSchema, c.core.Name, err)
	}
	claim.Key = c.keys.DecodeKey(owner)
	return claim, owner, nil
}

// mine reports whether a field is one of those that are looked after.
func (c *Claims) mine(field string) bool {
	return slices.ContainsFunc(c.core.Unique.All, func(u stored.Unique) bool { return u.Scoped == field })
}

// ofRow finds out whether a claim has its item.
func (c *Claims) ofRow(ctx context.Context, row ddb.Item, mend bool) ([]Finding, error) {
	claim, owner, err := c.read(row)
	if err != nil || !c.mine(claim.Field) {
		return nil, err
	}
	now, item, err := c.both(ctx, row, owner)
	if err != nil || !ddb.Equal(now[stored.ClaimAttribute], row[stored.ClaimAttribute]) || c.core.Claimed(item, row) {
		return nil, err
	}
	f := Finding{Claim: claim, State: Orphan}
	if mend {
		f.Done, err = c.write(ctx, func() ([]types.TransactWriteItem, error) { return c.core.FreeClaim(now, owner, item) })
	}
	return []Finding{f}, err
}

// ofItem finds out whether an item has its claims.
func (c *Claims) ofItem(ctx context.Context, raw ddb.Item, mend bool) (found []Finding, err error) {
	for _, of := range c.core.Claims(raw) {
		res := c.core.Read(ctx, of.Key, ddb.Options{})
		if res.Err != nil {
			return found, res.Err
		}
		if ddb.Equal(res.Item[stored.ClaimAttribute], of.By(c.core.Key(raw))) {
			continue
		}
		f, err := c.without(ctx, of, c.core.Key(raw), mend)
		if err != nil {
			return found, err
		}
		if f != nil {
			found = append(found, *f)
		}
	}
	return found, nil
}

// claimTries bounds how often others may write what is mended.
const claimTries = 64

// without decides about an item that seems not to have a claim; nil: it has it, or needs
// none any more.
func (c *Claims) without(ctx context.Context, of stored.Claim, key ddb.Item, mend bool) (*Finding, error) {
	core := c.core
	for range claimTries {
		row, item, err := c.both(ctx, of.Key, key)
		if err != nil || !core.Claimed(item, of.Key) || ddb.Equal(row[stored.ClaimAttribute], of.By(key)) {
			return nil, err
		}
		f := &Finding{Claim: Claim{of.Unique.Scoped, c.keys.DecodeKey(key)}, State: Missing}
		writes := func() ([]types.TransactWriteItem, error) { return core.TakeClaim(of, item) }
		if len(row) > 0 {
			other, owner, err := c.read(row)
			if err != nil {
				return nil, err
			}
			now, theirs, err := c.both(ctx, of.Key, owner)
			switch {
			case err != nil:
				return nil, err
			case !ddb.Equal(now[stored.ClaimAttribute], row[stored.ClaimAttribute]):
				continue
			case core.Claimed(theirs, of.Key):
				f.State, f.Owner = Double, other.Key
				return f, nil
			}
			writes = func() ([]types.TransactWriteItem, error) { return core.FreeClaim(row, owner, theirs) }
		}
		if !mend {
			return f, nil
		}
		done, err := c.write(ctx, writes)
		if f.Done = done && len(row) == 0; f.Done || err != nil {
			return f, err
		}
	}
	return nil, &repo.ConflictError{Table: c.core.Name, Key: c.keys.DecodeKey(key), Attempts: claimTries}
}

// both reads a claim and an item as they are at one moment.
func (c *Claims) both(ctx context.Context, row, item ddb.Item) (ddb.Item, ddb.Item, error) {
	client, ok := c.core.Client.(ddb.TransactReader)
	if !ok {
		return nil, nil, fmt.Errorf("%w: the client has no TransactGetItems, which unique values need", repo.ErrConfig)
	}
	core := c.core
	images, res := core.TransactGet(ctx, client, ddb.Options{}, core.GetOf(core.Key(row)), core.GetOf(item))
	if res.Err != nil {
		return nil, nil, res.Err
	}
	return images[0], images[1], nil
}

// write sends a transaction; done is false where others were quicker.
func (c *Claims) write(ctx context.Context, writes func() ([]types.TransactWriteItem, error)) (done bool, err error) {
	client, ok := c.core.Client.(ddb.Transactor)
	if !ok {
		return false, fmt.Errorf("%w: the client has no TransactWriteItems, which unique values need", repo.ErrConfig)
	}
	parts, err := writes()
	if err != nil {
		return false, err
	}
	switch res := c.core.Transact(ctx, client, ddb.Options{}, parts...); res.Outcome {
	case ddb.Applied:
		return true, nil
	case ddb.Condition:
		return false, nil
	case ddb.Unknown:
		return false, fmt.Errorf("claims of table %q: %w: %w", c.core.Name, repo.ErrOutcomeUnknown, res.Err)
	default:
		return false, res.Err
	}
}
