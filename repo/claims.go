package repo

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// Claims are the rows that say which item has which value of a unique attribute. Programs
// need them where such an attribute is new to a table with items, or where others write
// that know nothing of claims. All of it may run beside writers, and again.
type Claims struct{ t *KeyTable }

// Claims are those of T.
func (t *Table[T]) Claims() *Claims { return &Claims{t.KeyTable} }

// UniqueOf says what is unique, to a program without the type.
type UniqueOf struct {
	// Attributes are those of each name: the name of the one attribute, or of unique=NAME.
	Attributes map[string][]string
	// Type is the attribute that names an item's type, and TypeName the type, where the
	// type has the role type=NAME. The prefixes are those of its keys.
	Type, TypeName              string
	PartitionPrefix, SortPrefix string
}

// Claims are those of a type that UniqueOf describes.
func (t *KeyTable) Claims(of UniqueOf) (*Claims, error) {
	s := &schema{pk: t.pk, sk: t.sk, codec: t.codec}
	s.pk.role.prefix, s.sk.role.prefix = of.PartitionPrefix, of.SortPrefix
	s.entity.name, s.entity.role.of = of.Type, of.TypeName
	for _, name := range slices.Sorted(maps.Keys(of.Attributes)) {
		s.unique = append(s.unique, stored.Unique{Name: name, Attributes: slices.Clone(of.Attributes[name])})
	}
	if err := s.checkUnique(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	keys, err := newKeyTable(t.client, t.Name(), s, t.cfg)
	if err != nil {
		return nil, err
	}
	return &Claims{keys}, nil
}

// Claim is a row: the item with the key has a value of the field.
type Claim struct {
	Field string // with the type's name, or its keys' prefixes, before it
	Key   Key
}

// ClaimState is what is wrong with a claim.
type ClaimState string

// What may be wrong.
const (
	ClaimMissing ClaimState = "missing" // an item has a value without a claim
	ClaimDouble  ClaimState = "double"  // an item has a value that is claimed by another, which has it too
	ClaimOrphan  ClaimState = "orphan"  // a claim names an item that has not the value: it stands in nobody's way
)

// ClaimFinding is something that is wrong.
type ClaimFinding struct {
	Claim
	State ClaimState
	Owner Key  // of a double: the other item, which has the claim
	Done  bool // it was mended
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
// each item that must have one, and the item of each claim.
func (c *Claims) Check(ctx context.Context) iter.Seq2[ClaimFinding, error] { return c.walk(ctx, false) }

// Repair is Check, and claims what items have without a claim, and deletes the claims that
// name items without the value: a transaction for each. Doubles it tells only: change one
// of the two items.
func (c *Claims) Repair(ctx context.Context) iter.Seq2[ClaimFinding, error] { return c.walk(ctx, true) }

func (c *Claims) scan(ctx context.Context) iter.Seq2[ddb.Item, error] {
	client, ok := c.t.client.(scanner)
	if !ok {
		return func(yield func(ddb.Item, error) bool) {
			yield(nil, fmt.Errorf("%w: the client has no method Scan: give it that of *dynamodb.Client", ErrConfig))
		}
	}
	in := dynamodb.ScanInput{TableName: &c.t.core.Name, ConsistentRead: aws.Bool(true)}
	return c.t.core.Pages(ctx, "Scan", ddb.Options{}, func(ctx context.Context, start ddb.Item, o func(*dynamodb.Options)) (any, error) {
		in.ExclusiveStartKey = start
		return client.Scan(ctx, &in, o)
	})
}

func (c *Claims) walk(ctx context.Context, mend bool) iter.Seq2[ClaimFinding, error] {
	return func(yield func(ClaimFinding, error) bool) {
		for raw, err := range c.scan(ctx) {
			var found []ClaimFinding
			switch {
			case err != nil:
			case stored.IsClaim(raw):
				found, err = c.ofRow(ctx, raw, mend)
			case c.t.has(raw):
				found, err = c.ofItem(ctx, raw, mend)
			}
			for _, f := range found {
				if !yield(f, nil) {
					return
				}
			}
			if err != nil && !yield(ClaimFinding{}, err) {
				return
			}
		}
	}
}

// has reports whether an item is one of the table's type.
func (t *KeyTable) has(raw ddb.Item) bool {
	for _, f := range []field{t.pk, t.sk} {
		if s, ok := raw[f.name].(*types.AttributeValueMemberS); f.role.prefix != "" && (!ok || f.bare(s.Value) == s.Value) {
			return false
		}
	}
	return t.core.CheckType(raw) == nil
}

// read is what the row of a claim says.
func (c *Claims) read(row ddb.Item) (claim Claim, owner ddb.Item, err error) {
	claim.Field, owner, err = c.t.core.ClaimOf(row)
	if err != nil {
		return claim, nil, fmt.Errorf("%w: row of table %q: %w", ErrSchema, c.t.Name(), err)
	}
	claim.Key = c.t.DecodeKey(owner)
	return claim, owner, nil
}

// mine reports whether a field is one of those that are looked after.
func (c *Claims) mine(field string) bool {
	return slices.ContainsFunc(c.t.core.Unique.All, func(u stored.Unique) bool { return u.Scoped == field })
}

// ofRow finds out whether a claim has its item.
func (c *Claims) ofRow(ctx context.Context, row ddb.Item, mend bool) ([]ClaimFinding, error) {
	claim, owner, err := c.read(row)
	if err != nil || !c.mine(claim.Field) {
		return nil, err
	}
	now, item, err := c.both(ctx, row, owner)
	if err != nil || !ddb.Equal(now[stored.ClaimAttribute], row[stored.ClaimAttribute]) || c.t.core.Claimed(item, row) {
		return nil, err
	}
	f := ClaimFinding{Claim: claim, State: ClaimOrphan}
	if mend {
		f.Done, err = c.write(ctx, func() ([]types.TransactWriteItem, error) { return c.t.core.FreeClaim(now, owner, item) })
	}
	return []ClaimFinding{f}, err
}

// ofItem finds out whether an item has its claims.
func (c *Claims) ofItem(ctx context.Context, raw ddb.Item, mend bool) (found []ClaimFinding, err error) {
	for _, of := range c.t.core.Claims(raw) {
		res := c.t.core.Read(ctx, of.Key, ddb.Options{})
		if res.Err != nil {
			return found, res.Err
		}
		if ddb.Equal(res.Item[stored.ClaimAttribute], of.By(c.t.core.Key(raw))) {
			continue
		}
		f, err := c.without(ctx, of, c.t.core.Key(raw), mend)
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
func (c *Claims) without(ctx context.Context, of stored.Claim, key ddb.Item, mend bool) (*ClaimFinding, error) {
	core := c.t.core
	for range claimTries {
		row, item, err := c.both(ctx, of.Key, key)
		if err != nil || !core.Claimed(item, of.Key) || ddb.Equal(row[stored.ClaimAttribute], of.By(key)) {
			return nil, err
		}
		f := &ClaimFinding{Claim: Claim{of.Unique.Scoped, c.t.DecodeKey(key)}, State: ClaimMissing}
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
				f.State, f.Owner = ClaimDouble, other.Key
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
	return nil, &ConflictError{Table: c.t.Name(), Key: c.t.DecodeKey(key), Attempts: claimTries}
}

// both reads a claim and an item as they are at one moment.
func (c *Claims) both(ctx context.Context, row, item ddb.Item) (ddb.Item, ddb.Item, error) {
	client, ok := c.t.client.(ddb.TransactReader)
	if !ok {
		return nil, nil, fmt.Errorf("%w: the client has no TransactGetItems, which unique values need", ErrConfig)
	}
	core := c.t.core
	images, res := core.TransactGet(ctx, client, ddb.Options{}, core.GetOf(core.Key(row)), core.GetOf(item))
	if res.Err != nil {
		return nil, nil, res.Err
	}
	return images[0], images[1], nil
}

// write sends a transaction; done is false where others were quicker.
func (c *Claims) write(ctx context.Context, writes func() ([]types.TransactWriteItem, error)) (done bool, err error) {
	client, ok := c.t.client.(ddb.Transactor)
	if !ok {
		return false, fmt.Errorf("%w: the client has no TransactWriteItems, which unique values need", ErrConfig)
	}
	parts, err := writes()
	if err != nil {
		return false, err
	}
	switch res := c.t.core.Transact(ctx, client, ddb.Options{}, parts...); res.Outcome {
	case ddb.Applied:
		return true, nil
	case ddb.Condition:
		return false, nil
	default:
		return false, res.Err
	}
}
