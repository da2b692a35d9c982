package stored

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// A claim is a row in the table of the items, which says to which of them a value of a
// unique attribute belongs. Its key is made of the value, so that two items cannot have
// it. It is marked as a tombstone: all who read the table, also programs that know nothing
// of claims, take it for no item.

// ClaimPrefix begins the partition keys of claims, and of nothing else.
const ClaimPrefix = RowPrefix + "unique:"

// ClaimAttribute is the attribute of a claim that says whose it is: a map, which can be in
// no key of an index.
const ClaimAttribute = "uniqueClaim"

// What that map has.
const (
	claimOf = "of" // Unique.Scoped
	claimBy = "by" // the owner's key
)

// Unique is what no two items of a type have alike.
type Unique struct {
	Name       string   // as the type's user has named it: of the attribute, if it is one
	Scoped     string   // the same, told from that of other types which share the table
	Attributes []string // all of which must be alike
}

// Uniques are those of a type.
type Uniques struct {
	All []Unique
	// RowOf is the key of a claim, from the text that tells it from others.
	RowOf func(text string) ddb.Item
}

// Claim is the row of one value of a unique attribute.
type Claim struct {
	Unique *Unique
	Key    ddb.Item
}

// UniqueAttributes are the attributes that claims are made of.
func (t *Table) UniqueAttributes() (names []string) {
	for _, u := range t.Unique.All {
		names = append(names, u.Attributes...)
	}
	return names
}

// IsUnique reports whether claims are made of an attribute.
func (t *Table) IsUnique(name string) bool {
	return slices.ContainsFunc(t.Unique.All, func(u Unique) bool { return slices.Contains(u.Attributes, name) })
}

// Claims are those that an item must have: none for what is empty, or hidden.
func (t *Table) Claims(item ddb.Item) (claims []Claim) {
	if len(t.Unique.All) == 0 || t.Hidden(item) {
		return nil
	}
	for i := range t.Unique.All {
		u := &t.Unique.All[i]
		if text, some := u.Text(item); some {
			claims = append(claims, Claim{u, t.Unique.RowOf(text)})
		}
	}
	return claims
}

// Claimed reports whether an item has a right to a claim.
func (t *Table) Claimed(item ddb.Item, row ddb.Item) bool {
	key := t.KeyText(row)
	return t.CheckType(item) == nil && slices.ContainsFunc(t.Claims(item), func(c Claim) bool { return t.KeyText(c.Key) == key })
}

// ClaimsDiffer reports whether an item has other claims than before.
func (t *Table) ClaimsDiffer(before, after ddb.Item) bool {
	if len(t.Unique.All) == 0 {
		return false
	}
	return !slices.EqualFunc(t.Claims(before), t.Claims(after), func(a, b Claim) bool { return t.KeyText(a.Key) == t.KeyText(b.Key) })
}

// Text tells the values of an item from all others; none if one of them is empty.
func (u *Unique) Text(item ddb.Item) (text string, some bool) {
	sum := sha256.New()
	add := func(s string) {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
		sum.Write([]byte(s))
	}
	add(u.Scoped)
	for _, name := range u.Attributes {
		value := ddb.ScalarText(item[name])
		if _, number := item[name].(*types.AttributeValueMemberN); value == "" || number && value == "0" {
			return "", false
		}
		add(ddb.TypeName(item[name]))
		add(value)
	}
	return ClaimPrefix + u.Scoped + ":" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), true
}

// RowOf is the row of a claim of an item.
func (t *Table) RowOf(c Claim, owner ddb.Item) ddb.Item {
	row := ddb.Copy(c.Key)
	row[ClaimAttribute] = c.By(t.Key(owner))
	row[t.Attr.Tombstone] = ddb.True()
	return row
}

// By is what the row of a claim says of whose it is.
func (c Claim) By(owner ddb.Item) types.AttributeValue {
	return &types.AttributeValueMemberM{Value: ddb.Item{claimOf: ddb.Text(c.Unique.Scoped), claimBy: &types.AttributeValueMemberM{Value: owner}}}
}

// IsClaim reports whether a row is that of a claim.
func IsClaim(row ddb.Item) bool { return row[ClaimAttribute] != nil }

// ClaimOf reads the row of a claim: what it is of, and the key of the item that has it.
func (t *Table) ClaimOf(row ddb.Item) (scoped string, owner ddb.Item, err error) {
	m, _ := row[ClaimAttribute].(*types.AttributeValueMemberM)
	if m != nil {
		of, _ := m.Value[claimOf].(*types.AttributeValueMemberS)
		by, _ := m.Value[claimBy].(*types.AttributeValueMemberM)
		if of != nil && by != nil && by.Value[t.Partition] != nil && (t.Sort == "" || by.Value[t.Sort] != nil) {
			return of.Value, t.Key(by.Value), nil
		}
	}
	return "", nil, &ShapeError{ClaimAttribute, fmt.Errorf("%s, not the claim of a unique attribute", describe(row[ClaimAttribute]))}
}

// FreeClaim takes a claim away whose item, as it was read, has not the value: the parts of
// a transaction that demands that it is so still.
func (t *Table) FreeClaim(row, owner, image ddb.Item) ([]types.TransactWriteItem, error) {
	same, err := t.asClaimed(owner, image)
	if err != nil {
		return nil, err
	}
	w := t.NewWrite()
	w.IfEqual(ClaimAttribute, row[ClaimAttribute])
	return []types.TransactWriteItem{same, ddb.DeleteOf(w.Delete(t.Key(row)))}, nil
}

// TakeClaim takes a claim for an item that has the value, as it was read, if it is free.
func (t *Table) TakeClaim(c Claim, image ddb.Item) ([]types.TransactWriteItem, error) {
	same, err := t.asClaimed(t.Key(image), image)
	if err != nil {
		return nil, err
	}
	return []types.TransactWriteItem{same, t.PutOf(t.RowOf(c, image))}, nil
}

// asClaimed demands of an item that what it claims is as it was read.
func (t *Table) asClaimed(key, image ddb.Item) (types.TransactWriteItem, error) {
	w := t.NewWrite()
	if len(image) == 0 {
		w.IfAbsent(t.Partition)
	} else {
		w.IfExists(t.Partition)
		w.IfSeen(image, slices.Concat(t.Named(t.Type, t.Attr.Tombstone, t.Attr.LockStub), t.UniqueAttributes())...)
	}
	return w.Check(key)
}
