package verify

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/history"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// claims looks at the claims of unique attributes beside the items that have them: both
// change in one transaction. Which attributes are unique nobody tells it. A claim's key is
// made of the values, so that those of an owner say of which.
type claims struct {
	*histories
	table  *stored.Table
	fields map[string]*field               // by what claims are of, as far as it is known
	owners map[string]map[string]time.Time // the same: the items that have had one, since when
	tries  map[string]int                  // the same: images that were looked at for a field
}

// owner is what a claim says: of what it is, and of which item.
type owner struct {
	of, key, name string
}

func (h *histories) unique(table *stored.Table) {
	c := &claims{h, table, map[string]*field{}, map[string]map[string]time.Time{}, map[string]int{}}
	keys := slices.Sorted(maps.Keys(h.changes))
	for _, key := range keys {
		for _, change := range h.changes[key] {
			c.learn(change, change.Before, time.Time{})
			c.learn(change, change.After, change.Time)
		}
	}
	for _, key := range keys {
		for _, change := range h.changes[key] {
			if stored.IsClaim(change.Before) || stored.IsClaim(change.After) {
				c.claim(change)
			} else {
				c.item(change)
			}
		}
	}
}

// ownerOf is whose a claim is.
func (c *claims) ownerOf(row ddb.Item) (o owner, ok bool) {
	if !stored.IsClaim(row) {
		return o, false
	}
	of, key, err := c.table.ClaimOf(row)
	if err != nil {
		return o, false // it says nothing
	}
	return owner{of, history.KeyHash(key), nameOf(key)}, true
}

// learn takes from a claim, and what its owner was, of which attributes it is made.
func (c *claims) learn(change Change, row ddb.Item, since time.Time) {
	o, ok := c.ownerOf(row)
	if !ok {
		return
	}
	if c.owners[o.of] == nil {
		c.owners[o.of] = map[string]time.Time{}
	}
	if at, there := c.owners[o.of][o.key]; !there || since.Before(at) {
		c.owners[o.of][o.key] = since
	}
	for _, of := range c.changes[o.key] {
		for _, item := range []ddb.Item{of.Before, of.After} {
			if c.fields[o.of] != nil || c.tries[o.of] > 100 {
				return
			}
			if len(item) > 0 {
				c.tries[o.of]++
				c.fields[o.of] = c.made(o.of, row, item, change.Key)
			}
		}
	}
}

// made finds the attributes of an item, three at most, that a claim is made of.
func (c *claims) made(of string, row, item ddb.Item, key string) *field {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if ddb.ScalarText(item[name]) != "" && !c.table.Reserved(name) {
			names = append(names, name)
		}
	}
	for _, some := range upToThree(names[:min(len(names), 24)]) {
		if f := (&field{stored.Unique{Scoped: of, Attributes: some}, c.table, row}); f.claimOf(item) == key {
			return f
		}
	}
	return nil
}

// field is what claims are of.
type field struct {
	stored.Unique
	table *stored.Table
	row   ddb.Item // one of its claims
}

// claimOf is the key of the claim that an item must have; "": none.
func (f *field) claimOf(item ddb.Item) string {
	text, some := f.Text(item)
	if !some || f.table.Hidden(item) {
		return ""
	}
	key := f.table.Key(f.row)
	if _, binary := key[f.table.Partition].(*types.AttributeValueMemberB); binary {
		key[f.table.Partition] = ddb.Bytes([]byte(text))
	} else {
		key[f.table.Partition] = ddb.Text(text)
	}
	return history.KeyHash(key)
}

func upToThree(names []string) (all [][]string) {
	for i := range names {
		all = append(all, names[i:i+1])
	}
	for i, a := range names {
		for j, b := range names[i+1:] {
			all = append(all, []string{a, b})
			for _, third := range names[i+j+2:] {
				all = append(all, []string{a, b, third})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b []string) int { return len(a) - len(b) })
	return all
}

// claim: whoever has one has the value, and whoever loses it has not.
func (c *claims) claim(change Change) {
	from, had := c.ownerOf(change.Before)
	to, has := c.ownerOf(change.After)
	if had && has && from == to {
		return
	}
	if f := c.fields[to.of]; has && f != nil && c.known(to.key) && !c.was(to.key, change.Time, func(item ddb.Item) bool { return f.claimOf(item) == change.Key }) {
		c.tell(RuleUnique, fmt.Sprintf("%s has got the claim, and not the value", to.name), change)
	}
	if f := c.fields[from.of]; had && f != nil && c.known(from.key) && !c.was(from.key, change.Time, func(item ddb.Item) bool { return f.claimOf(item) != change.Key }) {
		c.tell(RuleUnique, fmt.Sprintf("%s has lost the claim, and has the value still", from.name), change)
	}
}

// item: whoever gets a value has its claim.
func (c *claims) item(change Change) {
	for _, of := range slices.Sorted(maps.Keys(c.fields)) {
		f := c.fields[of]
		since, one := c.owners[of][change.Key]
		if f == nil || !one || change.Time.Before(since) {
			continue // it may have been there before its attribute was unique
		}
		row := f.claimOf(change.After)
		if row == "" || row == f.claimOf(change.Before) || len(c.changes[row]) > 0 && !c.known(row) {
			continue
		}
		mine := func(claim ddb.Item) bool { o, ok := c.ownerOf(claim); return ok && o.key == change.Key }
		if !c.was(row, change.Time, mine) {
			c.tell(RuleUnique, fmt.Sprintf("it has got a value of %q without its claim", of), change)
		}
	}
}

// was reports whether an item was something at about a time.
func (c *claims) was(key string, at time.Time, what func(ddb.Item) bool) bool {
	return slices.ContainsFunc(c.changes[key].near(at), what)
}
