package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
	"github.com/dynahold/dynahold/repo"
)

type itemCommands struct {
	Show    itemShowCommand    `cmd:"" help:"Explain the library's attributes of an item of any table: who holds it until when, who waits, what it remembers."`
	History itemHistoryCommand `cmd:"" help:"Tell what became of an item in the last 24 hours, from the table's stream: locks, losses, changes, and by whom."`
}

type itemShowCommand struct{ itemArguments }

func (itemShowCommand) Help() string {
	return `Who waits for the item's lock is told by the first bytes of the acquisition's id: a place in its queue has no room for a name. Who holds it is told by name, as are those who wait for a ticket (queue list).`
}

// itemArguments name an item.
type itemArguments struct {
	tableFlags
	Partition string `arg:"" help:"Value of the partition key; bytes in base64."`
	Sort      string `arg:"" optional:"" help:"Value of the sort key, where the table has one."`
}

// openItem opens the item's table, and encodes the key.
func (a *itemArguments) openItem(ctx context.Context) (t *opened, keys *repo.KeyTable, key repo.Key, raw map[string]types.AttributeValue, err error) {
	if t, err = a.open(ctx); err != nil {
		return
	}
	if keys, err = t.keys(); err != nil {
		return
	}
	if key, err = t.key(a.Partition, a.Sort); err == nil {
		raw, err = keys.EncodeKey(key)
	}
	return
}

// itemDocument is what item show tells as JSON.
type itemDocument struct {
	Table     string            `json:"table"`
	Partition string            `json:"partition"`
	Sort      string            `json:"sort,omitempty"`
	Held      bool              `json:"held"`
	Holder    string            `json:"holder,omitempty"`
	Token     int64             `json:"token"`
	LastToken int64             `json:"last_token"`
	Since     *time.Time        `json:"since"` // when the holder asked for it; null: not known
	Until     *time.Time        `json:"until"` // null: nobody holds it, or without an end
	Expired   bool              `json:"expired"`
	Endless   bool              `json:"endless"`
	ByHand    bool              `json:"by_hand"`
	Handed    bool              `json:"handed_over"`
	Waiting   []string          `json:"waiting"`
	Stub      bool              `json:"stub"`
	Tombstone bool              `json:"tombstone"`
	Expires   *time.Time        `json:"expires"`
	Writes    int               `json:"writes"`
	OnceIDs   int               `json:"once_ids"`
	Foreign   []foreignDocument `json:"foreign"`
	Says      []string          `json:"says"` // the same in words
}

type foreignDocument struct {
	Attribute string `json:"attribute"`
	Role      string `json:"role"`
	Why       string `json:"why"`
}

// Run implements the command.
func (cmd *itemShowCommand) Run(ctx context.Context, c *console) error {
	t, keys, key, raw, err := cmd.openItem(ctx)
	if err != nil {
		return err
	}
	item, err := t.get(ctx, raw)
	if err != nil {
		return err
	}
	if len(item) == 0 {
		return outcome{exitNothing, fmt.Errorf("there is no item %s in table %q%s", keyWords(key), t.name, asStored(key))}
	}
	state, now := keys.State(item), time.Now()
	says := explain(state, now)
	if why := t.elsewhere(keys, item); why != "" {
		says = append(says, [2]string{"other names", why})
	}
	if cmd.Output == "json" {
		return c.printJSON(itemDocumentOf(cmd, state, says, now))
	}
	return c.print(fmt.Sprintf("Item %s of table %s\n\n", keyWords(key), t.name) + factsText(says))
}

func itemDocumentOf(cmd *itemShowCommand, s repo.State, says [][2]string, now time.Time) itemDocument {
	d := itemDocument{
		Table: cmd.Table, Partition: cmd.Partition, Sort: cmd.Sort,
		Held: s.Lock.Held, Holder: s.Lock.Owner, Token: s.Lock.Token, LastToken: s.Lock.Last, Expired: s.Lock.Expired(now),
		Endless: s.Endless, ByHand: s.ByHand, Handed: s.Handed, Waiting: append([]string{}, s.Waiting...),
		Stub: s.Lock.Stub, Tombstone: s.Tombstone, Expires: stated(s.Expires), Writes: s.Writes, OnceIDs: s.OnceIDs,
		Foreign: []foreignDocument{},
	}
	if s.Handed {
		d.Holder = "" // the item names none
	}
	if s.Lock.Held {
		d.Since = stated(s.Lock.Since)
	}
	if s.Lock.Held && !s.Endless {
		d.Until = stated(s.Lock.Until)
	}
	for _, f := range s.Foreign {
		d.Foreign = append(d.Foreign, foreignDocument{f.Name, f.Role, f.Why})
	}
	for _, fact := range says {
		d.Says = append(d.Says, fact[0]+": "+fact[1])
	}
	return d
}

// explain says in words what an item's attributes mean.
func explain(s repo.State, now time.Time) (says [][2]string) {
	say := func(what, format string, args ...any) {
		says = append(says, [2]string{what, fmt.Sprintf(format, args...)})
	}
	for _, f := range s.Foreign {
		say("collision", "attribute %q is not the library's: %s; every call on the item is ErrSchema: rename it by TableConfig.Attributes.%s", f.Name, f.Why, f.Role)
	}
	explainLock(s, now, say)
	if n := len(s.Waiting); n > 0 {
		say("queue", "%d wait in line (Fair), the next one first: %s; some of them may be dead, which are passed over", n, strings.Join(s.Waiting, ", "))
	}
	if s.Lock.Stub {
		say("stub", "the key has no data yet: it was locked by a change that makes the item; readers see no item")
	}
	if s.Tombstone {
		say("tombstone", "the item was deleted, and is kept so that late events stay out; readers see no item")
	}
	if !s.Expires.IsZero() {
		say("removal", "DynamoDB may remove the item after %s, where the table's TTL is on", moment(s.Expires, now))
	}
	if s.Writes > 0 {
		say("writers", "ids of its latest writes (%d), by which a writer whose answer was lost finds out what became of its own", s.Writes)
	}
	if s.OnceIDs > 0 {
		say("once", "ids of operations that it remembers (%d): these are not made again", s.OnceIDs)
	}
	return says
}

func explainLock(s repo.State, now time.Time, say func(what, format string, args ...any)) {
	l := s.Lock
	if !l.Held {
		say("lock", "nobody holds it")
		if l.Last > 0 {
			say("last token", "%d", l.Last)
		}
		return
	}
	say("lock", "held by %s", shown.Holder(l.Owner, s.Handed))
	say("token", "%d", l.Token)
	if !l.Since.IsZero() {
		say("since", "%s: its holder asked for it then", moment(l.Since, now))
	}
	switch {
	case s.Endless:
		say("until", "without an end: its holder unlocks it (fail-closed), or somebody breaks it")
	case l.Expired(now):
		say("until", "%s: expired, whoever asks next takes it over", moment(l.Until, now))
	default:
		say("until", "%s, unless the holder extends it", moment(l.Until, now))
	}
	if s.ByHand {
		say("by hand", "the lock was not taken by this library, or not by its rules")
	}
}
