package main

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
	"github.com/dynahold/dynahold/repo"
)

type itemHistoryCommand struct {
	itemArguments
	From time.Time `placeholder:"TIME" help:"Only changes from this time on, like 2026-11-22T03:00:00Z."`
}

// Help says where a history comes from.
func (itemHistoryCommand) Help() string {
	return `Tells what became of an item in the last 24 hours, from the table's DynamoDB stream: who took its lock, committed, let it go or lost it, who joined the line, which attributes changed, and changes by writers that do not follow the protocol. Names of attributes are printed, values are not. The stream must have the view NEW_AND_OLD_IMAGES; all of it is read, whatever the item, so a busy table takes a while. Times are those of the stream, to the second. The stream is asked at --endpoint too, where that is given.

Exit codes: 0 ok, also where the item did not change; 1 failed; 2 usage; 3 there is no table, no stream, or one without both images.`
}

// itemChange is what a record of the stream tells of the item.
type itemChange struct {
	Time       time.Time `json:"time"`
	Event      string    `json:"event"` // insert, modify or remove
	Holder     string    `json:"holder,omitempty"`
	Token      int64     `json:"token,omitempty"` // of the lock after the change
	Attributes []string  `json:"attributes"`      // of the item's own that changed
	Foreign    bool      `json:"foreign"`         // by a writer that does not follow the protocol
	Says       []string  `json:"says"`
}

// Run implements the command.
func (cmd *itemHistoryCommand) Run(ctx context.Context, c *console) error {
	t, keys, key, raw, err := cmd.openItem(ctx)
	if err != nil {
		return err
	}
	s, err := t.stream()
	if err != nil {
		return err
	}
	changes := []itemChange{}
	err = s.read(ctx, func(r streamtypes.Record) error {
		change, of, err := changeOf(keys, raw, r)
		if err == nil && of && !change.Time.Before(cmd.From) {
			changes = append(changes, change)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.printHistory(cmd, key, changes)
}

func (c *console) printHistory(cmd *itemHistoryCommand, key repo.Key, changes []itemChange) error {
	if cmd.Output == "json" {
		return c.printJSON(map[string]any{"table": cmd.Table, "partition": cmd.Partition, "sort": cmd.Sort, "changes": changes})
	}
	if len(changes) == 0 {
		return c.print(fmt.Sprintf("The stream of table %s has no change of item %s: it keeps 24 hours%s.\n", cmd.Table, keyWords(key), asStored(key)))
	}
	var rows [][]string
	for _, change := range changes {
		rows = append(rows, []string{change.Time.Format(time.RFC3339), strings.Join(change.Says, "; ")})
	}
	return c.print(tableText([]string{"time", "what"}, rows))
}

// changeOf tells a record, if it is of the item with a key.
func changeOf(keys *repo.KeyTable, key map[string]types.AttributeValue, r streamtypes.Record) (change itemChange, of bool, err error) {
	d := r.Dynamodb
	place, err := attributevalue.FromDynamoDBStreamsMap(d.Keys)
	if err != nil || !maps.EqualFunc(place, key, equalValues) {
		return change, false, err
	}
	before, err := attributevalue.FromDynamoDBStreamsMap(d.OldImage)
	if err != nil {
		return change, true, err
	}
	after, err := attributevalue.FromDynamoDBStreamsMap(d.NewImage)
	if err != nil {
		return change, true, err
	}
	change = tell(keys, before, after, byTTL(r))
	change.Time, change.Event = aws.ToTime(d.ApproximateCreationDateTime).UTC(), strings.ToLower(string(r.EventName))
	return change, true, nil
}

// equalValues compares values of keys: a number is the same in other digits.
func equalValues(a, b types.AttributeValue) bool {
	x, number := a.(*types.AttributeValueMemberN)
	y, both := b.(*types.AttributeValueMemberN)
	if !number || !both {
		return reflect.DeepEqual(a, b)
	}
	m, isNumber := new(big.Rat).SetString(x.Value)
	n, areBoth := new(big.Rat).SetString(y.Value)
	return isNumber && areBoth && m.Cmp(n) == 0
}

// told is a change while it is being told.
type told struct {
	itemChange
	keys          *repo.KeyTable
	before, after map[string]types.AttributeValue
	was, is       repo.State
}

// tell says in words what lies between two images of an item.
func tell(keys *repo.KeyTable, before, after map[string]types.AttributeValue, byTTL bool) itemChange {
	t := &told{keys: keys, before: before, after: after, was: keys.State(before), is: keys.State(after)}
	t.Attributes = t.changed()
	if t.Token = t.is.Lock.Token; !t.is.Handed {
		t.Holder = t.is.Lock.Owner
	}
	t.sayItem(byTTL)
	t.sayLock()
	t.sayQueue()
	if t.is.OnceIDs > t.was.OnceIDs {
		t.say("the id of an operation is remembered")
	}
	if len(t.Says) == 0 {
		t.say("written without a change")
	}
	return t.itemChange
}

func (t *told) say(format string, args ...any) { t.Says = append(t.Says, fmt.Sprintf(format, args...)) }

// changed are the names of the item's own attributes that differ.
func (t *told) changed() []string {
	names := []string{}
	if len(t.before) == 0 || len(t.after) == 0 {
		return names
	}
	all := maps.Clone(t.before)
	maps.Copy(all, t.after)
	for name := range all {
		if t.keys.Role(name) == "" && !reflect.DeepEqual(t.before[name], t.after[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sayItem says what became of the item's data.
func (t *told) sayItem(byTTL bool) {
	switch visible, wasVisible := t.visible(t.after, t.is), t.visible(t.before, t.was); {
	case len(t.after) == 0 && byTTL:
		t.say("removed by TTL")
	case len(t.after) == 0 && wasVisible:
		t.say("deleted")
	case len(t.after) == 0:
		t.say("removed, with nothing but the library's attributes")
	case !wasVisible && visible:
		t.say("created")
	case wasVisible && t.is.Tombstone:
		t.say("deleted; a tombstone stays")
	case len(t.Attributes) > 0:
		t.say("changed: %s", strings.Join(t.Attributes, ", "))
	}
	// A write by the library to an item with ids of writes leaves its own.
	ids := t.roles("Writers", t.before)
	if t.Foreign = len(t.Attributes) > 0 && len(ids) > 0 && reflect.DeepEqual(ids, t.roles("Writers", t.after)); t.Foreign {
		t.say("by a writer that does not follow the protocol: it left no id")
	}
}

// visible reports whether readers see an item in an image.
func (t *told) visible(image map[string]types.AttributeValue, s repo.State) bool {
	return len(image) > 0 && !s.Lock.Stub && !s.Tombstone
}

// role is the library's attribute of a role.
func (t *told) role(role string, image map[string]types.AttributeValue) types.AttributeValue {
	for name, v := range image {
		if t.keys.Role(name) == role {
			return v
		}
	}
	return nil
}

// roles are the library's attributes of a role that has several.
func (t *told) roles(role string, image map[string]types.AttributeValue) map[string]types.AttributeValue {
	all := map[string]types.AttributeValue{}
	for name, v := range image {
		if t.keys.Role(name) == role {
			all[name] = v
		}
	}
	return all
}

// sayLock says what became of the lock.
func (t *told) sayLock() {
	was, is := t.was.Lock, t.is.Lock
	// The newest token that was ended by force is kept on the item.
	forced := !reflect.DeepEqual(t.role("LockStolen", t.before), t.role("LockStolen", t.after))
	switch {
	case !was.Held && !is.Held, len(t.after) == 0:
	case !was.Held:
		t.say("locked by %s, token %d", shown.Holder(is.Owner, t.is.Handed), is.Token)
	case !is.Held && forced:
		t.say("the lock of %s, token %d, was broken", shown.Holder(was.Owner, t.was.Handed), was.Token)
	case !is.Held:
		t.say("unlocked by %s, token %d", shown.Holder(was.Owner, t.was.Handed), was.Token)
	case was.Token != is.Token && forced:
		t.say("taken over from %s, token %d, by %s, token %d", shown.Holder(was.Owner, t.was.Handed), was.Token, shown.Holder(is.Owner, t.is.Handed), is.Token)
	case was.Token != is.Token:
		t.say("passed on by %s to %s, token %d", shown.Holder(was.Owner, t.was.Handed), shown.Holder(is.Owner, t.is.Handed), is.Token)
	case t.was.Handed && !t.is.Handed:
		t.say("%s has taken what was handed over, token %d", shown.Holder(is.Owner, false), is.Token)
	case !is.Until.Equal(was.Until):
		t.say("lock extended by %s until %s", shown.Holder(is.Owner, t.is.Handed), is.Until.UTC().Format(time.RFC3339))
	}
}

// sayQueue says who has joined or left the line of Fair. The entry of who holds the
// lock counts as none of the line.
func (t *told) sayQueue() {
	for _, id := range t.is.Waiting {
		if !slices.Contains(t.was.Waiting, id) {
			t.say("%s joins the line", id)
		}
	}
	for _, id := range t.was.Waiting {
		if !slices.Contains(t.is.Waiting, id) {
			t.say("%s leaves the line", id)
		}
	}
}
