package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/repo"
)

// renamed are the roles for which --attribute gives other names than the library's own.
func (t *opened) renamed() map[string]string {
	all, own := map[string]string{}, t.plain
	names := reflect.ValueOf(t.cfg.Attributes)
	for i := range names.NumField() {
		role, name := names.Type().Field(i).Name, names.Field(i).String()
		if name != "" && own.Role(name) != role {
			all[role] = name
		}
	}
	return all
}

// carried refuses names that no item of the table carries as the library writes them: a
// change by them would be none to the programs, or leave items that nobody can use. It
// reads the table until each name is found, and nothing where --attribute is not given.
func (t *opened) carried(ctx context.Context, items ...map[string]types.AttributeValue) error {
	all := t.renamed()
	if len(all) == 0 {
		return nil
	}
	keys, err := t.keys()
	if err != nil {
		return err
	}
	for _, role := range slices.Sorted(maps.Keys(all)) {
		name := all[role]
		found := slices.ContainsFunc(items, func(item map[string]types.AttributeValue) bool { return carries(keys, item, name) })
		if !found {
			if found, err = t.finds(ctx, keys, role, name); err != nil {
				return err
			}
		}
		if !found {
			return usage("--attribute %s=%s: no item of table %q carries this attribute as the library writes it; nothing was changed. Give the name that the programs have in TableConfig.Attributes.%s, or none", role, name, t.name, role)
		}
	}
	return nil
}

// carries reports whether an item has an attribute that is what the library writes there. A
// text is a holder only where the library has made it: any other attribute has one.
func carries(keys *repo.KeyTable, item map[string]types.AttributeValue, name string) bool {
	if keys.Role(name) == "LockedBy" && item[name] != nil {
		s := keys.State(item)
		return s.Lock.Held && (s.Handed || !s.Lock.Since.IsZero())
	}
	return item[name] != nil && !slices.ContainsFunc(keys.State(item).Foreign, func(f repo.Foreign) bool { return f.Name == name })
}

// finds looks for an item that carries a name, or for the table's TTL on it.
func (t *opened) finds(ctx context.Context, keys *repo.KeyTable, role, name string) (bool, error) {
	if role == "TTL" && t.desc != nil {
		if ttl, err := t.ttl(ctx); err == nil && ttl == name {
			return true, nil
		}
	}
	has := "attribute_exists(#name)"
	in := &dynamodb.ScanInput{TableName: &t.name, FilterExpression: &has, ExpressionAttributeNames: map[string]string{"#name": name}}
	found, err := t.scanFor(ctx, in, func(item map[string]types.AttributeValue) bool { return carries(keys, item, name) })
	if err != nil {
		return false, fmt.Errorf("whether items carry --attribute %s=%s is not known, and nothing was changed: %w", role, name, err)
	}
	return found, nil
}

// scanFor scans until an item fits, and reports whether one does.
func (t *opened) scanFor(ctx context.Context, in *dynamodb.ScanInput, fits func(item map[string]types.AttributeValue) bool) (bool, error) {
	for {
		out, err := t.scan(ctx, in)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(out.Items, fits) {
			return true, nil
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return false, nil
		}
	}
}

// breakable refuses to break a hold under names that are not those under which it was taken:
// half of it would stay on the item, or what is not the lock's would be taken away.
func (t *opened) breakable(ctx context.Context, key repo.Key) error {
	keys, item, err := t.find(ctx, key)
	if err != nil {
		return err
	}
	if keys.State(item).Lock.Held {
		if err := t.carried(ctx, item); err != nil {
			return err
		}
	}
	if why := t.misread(keys, item); why != "" {
		return usage("%s of table %q: %s. The programs have other names in TableConfig.Attributes than these: give theirs by --attribute; nothing was changed", keyWords(key), t.name, why)
	}
	return nil
}

// elsewhere says where a holder of the library stands on an item that nobody holds under the
// names that were given; "" if none does. What is free has none, and a holder's id has a sum.
func (t *opened) elsewhere(keys *repo.KeyTable, item map[string]types.AttributeValue) string {
	if keys.State(item).Lock.Held || t.schema == ofJobs.schema && isJobRow(item) {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(item)) {
		one := &types.AttributeValueMemberN{Value: "1"}
		as := map[string]types.AttributeValue{"lockedBy": item[name], "lockTime": one, "lockLease": one, "lockHeld": one, "lockToken": &types.AttributeValueMemberN{Value: "2"}}
		if carries(t.plain, as, "lockedBy") {
			return fmt.Sprintf("its attribute %q has a holder: the programs have other names in TableConfig.Attributes than these; give theirs by --attribute, as in --attribute LockedBy=%s", name, name)
		}
	}
	return ""
}

// freeElsewhere refuses to call a table free whose first page, of up to 1 MB, has an item that
// is held under other names.
func (t *opened) freeElsewhere(ctx context.Context) error {
	keys, err := t.keys()
	if err != nil {
		return err
	}
	out, err := t.scan(ctx, &dynamodb.ScanInput{TableName: &t.name})
	if err != nil {
		return ctx.Err()
	}
	for _, item := range out.Items {
		if why := t.elsewhere(keys, item); why != "" {
			return usage("nobody holds a lock of table %q under these names, but of %s %s", t.name, keyWords(keys.DecodeKey(item)), why)
		}
	}
	return nil
}

// find reads what a key names, and the keys of the table under the names that were given.
func (t *opened) find(ctx context.Context, key repo.Key) (keys *repo.KeyTable, item map[string]types.AttributeValue, err error) {
	if keys, err = t.keys(); err != nil {
		return nil, nil, err
	}
	raw, err := keys.EncodeKey(key)
	if err == nil {
		item, err = t.get(ctx, raw)
	}
	return keys, item, err
}

// get reads an item.
func (t *opened) get(ctx context.Context, key map[string]types.AttributeValue) (map[string]types.AttributeValue, error) {
	consistent := true
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.name, Key: key, ConsistentRead: &consistent})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// maxDrawn is how many tokens are drawn by those who wait in line, at most.
const maxDrawn = 1_000_000

// misread says why an item was not locked under the names that were given; "" if it may
// have been.
func (t *opened) misread(keys *repo.KeyTable, item map[string]types.AttributeValue) string {
	present := map[string]bool{} // roles
	for name := range item {
		present[keys.Role(name)] = true
	}
	all, s := t.renamed(), keys.State(item)
	l := s.Lock
	for _, role := range []string{"LockedBy", "LockTime", "LockHeld", "LockToken", "LockStolen"} {
		switch {
		case present[role]:
		case all[role] != "" && (l.Token != 0 || role == "LockedBy" && present["LockTime"] || role == "LockTime" && present["LockedBy"]):
			return fmt.Sprintf("it has no attribute %q, which --attribute gives for %s", all[role], role)
		case l.Held && l.Token != 0 && (role == "LockedBy" || role == "LockToken" && !s.ByHand):
			return fmt.Sprintf("it is held under token %d, and has no attribute for %s", l.Token, role)
		}
	}
	switch {
	case !l.Held || len(all) == 0:
		return ""
	case s.ByHand && t.heldUnderOwnNames(item):
		return "under the library's own names a program has locked it"
	}
	if why := t.mistaken(item, all, l); why != "" {
		return why
	}
	switch {
	case s.ByHand && (!present["LockedBy"] || !present["LockTime"]):
		return "it has no holder and end under these names"
	case l.Since.IsZero() && !s.Handed: // by hand
		return ""
	case l.Token > l.Last || l.Last-l.Token > maxDrawn:
		return fmt.Sprintf("tokens %d, of the hold, and %d, the last one, do not belong together", l.Token, l.Last)
	case !s.Endless && l.Until.Before(l.Since):
		return "its lease ended before it began"
	}
	return ""
}

// mistaken says which attribute of a locked item is not the lock's, or may not be: one that
// cannot be what it was given for, or that stands beside one under the library's own name
// which may be it as well. Breaking the lock by it would take a user's attribute away.
func (t *opened) mistaken(item map[string]types.AttributeValue, all map[string]string, l repo.Lock) string {
	for role, name := range all {
		if v := item[name]; v != nil && !mayBe(role, v, l) {
			return fmt.Sprintf("its attribute %q cannot be the %s of this hold", name, role)
		}
	}
	for name, v := range item {
		if role := t.plain.Role(name); all[role] != "" && item[all[role]] != nil && mayBe(role, v, l) {
			return fmt.Sprintf("it has %q, which --attribute gives for %s, and %q, the library's own name: either may be the lock's", all[role], role, name)
		}
	}
	return ""
}

// longest is for how long a hold may go on after it was asked for.
const longest = 10 * 365 * 24 * time.Hour

// mayBe reports whether a value may be what a hold has in a role.
func mayBe(role string, v types.AttributeValue, l repo.Lock) bool {
	n, seconds := int64(0), 0.0
	if number, is := v.(*types.AttributeValueMemberN); is {
		n, _ = strconv.ParseInt(number.Value, 10, 64)
		seconds, _ = strconv.ParseFloat(number.Value, 64)
	}
	switch role {
	case "LockTime":
		at := time.Unix(int64(min(seconds, math.MaxInt32*1000)), 0)
		return seconds > 0 && (l.Since.IsZero() || !at.Before(l.Since) && at.Before(l.Since.Add(longest)))
	case "LockLease":
		return seconds > 0
	case "LockHeld":
		return n == l.Token || near(n, l.Last)
	case "LockToken", "LockStolen":
		return near(n, l.Token) || near(n, l.Last)
	}
	return true
}

// near reports whether two tokens may be of one item: a row's first is a time in microseconds.
func near(a, b int64) bool { return max(a, b)-min(a, b) <= 1000*maxDrawn }

// heldUnderOwnNames reports whether a program of the library has locked an item, by its own names.
func (t *opened) heldUnderOwnNames(item map[string]types.AttributeValue) bool {
	s := t.plain.State(item)
	return s.Lock.Held && !s.ByHand
}
