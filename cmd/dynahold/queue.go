package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

type queueCommands struct {
	List  queueListCommand  `cmd:"" help:"List who stands in the queue of an entity since when, in the order of service."`
	Evict queueEvictCommand `cmd:"" help:"Take a ticket out of its queue by force, whether it has the turn or waits."`
}

// queueFlags name one queue.
type queueFlags struct {
	tableFlags
	Entity    string `arg:"" help:"What is queued for."`
	Namespace string `placeholder:"NAME" help:"Namespace of the programs (ticket.Config.Namespace)."`
}

type entryDocument struct {
	Number  int64      `json:"number"`
	ID      string     `json:"id"`
	Owner   string     `json:"owner"` // "": the programs do not say (ticket.Config.Owner)
	Since   *time.Time `json:"since"`
	Until   time.Time  `json:"until"`
	Expired bool       `json:"expired"`
	Holds   bool       `json:"holds"`
}

// stands says how things are with an entry.
func (d entryDocument) stands() string {
	switch {
	case d.Expired:
		return "expired: the next one passes it over"
	case d.Holds:
		return "has the turn"
	}
	return "waits"
}

// open opens the table, as one of queues.
func (f *queueFlags) open(ctx context.Context) (*opened, *ticket.Queue, error) {
	t, err := f.openAs(ctx, ofQueues)
	if err != nil {
		return nil, nil, err
	}
	queue, err := ticket.New(t.client, f.Table, ticket.Config{Namespace: f.Namespace, Table: t.cfg})
	return t, queue, err
}

// entries reads the queue.
func (f *queueFlags) entries(ctx context.Context, queue *ticket.Queue) ([]entryDocument, error) {
	entries, err := queue.List(ctx, f.Entity)
	if err != nil {
		return nil, err
	}
	list, taken := []entryDocument{}, false
	for _, e := range entries {
		d := entryDocument{Number: e.Number, ID: e.ID, Owner: e.Owner, Since: stated(e.Since), Until: e.Until.UTC(), Expired: e.Expired, Holds: !e.Expired && !taken}
		taken = taken || d.Holds
		list = append(list, d)
	}
	return list, nil
}

type queueListCommand struct{ queueFlags }

// Run implements the command.
func (cmd *queueListCommand) Run(ctx context.Context, c *console) error {
	t, queue, err := cmd.open(ctx)
	if err != nil {
		return err
	}
	list, err := cmd.entries(ctx, queue)
	if err == nil && len(list) == 0 {
		err = cmp.Or(t.nothing(ctx, ofQueues), cmd.noteUnknown(ctx, c, t))
	}
	if err != nil {
		return err
	}
	now, rows := time.Now(), [][]string(nil)
	for _, d := range list {
		rows = append(rows, []string{fmt.Sprint(d.Number), d.ID, shown.Holder(d.Owner, false), since(d.Since, now), d.stands(), moment(d.Until, now)})
	}
	return c.printList(cmd.Output, list, []string{"number", "entry", "owner", "since", "state", "until"}, rows, "nobody stands in the queue", nil)
}

// noteUnknown notes that there is no row of the queue, which may be mistyped. It is no error:
// TTL removes that of one where nobody stands.
func (f *queueFlags) noteUnknown(ctx context.Context, c *console, t *opened) error {
	name := f.Namespace + "/" + f.Entity
	_, row, err := t.find(ctx, repo.Key{Partition: name})
	if err == nil && len(row) == 0 {
		_, err = fmt.Fprintf(c.err, "table %q has no row of %q: nobody has ever stood there, or not lately\n", t.name, strings.TrimPrefix(name, "/"))
	}
	return err
}

type queueEvictCommand struct {
	queueFlags
	Number int64 `required:"" placeholder:"NUMBER" help:"Number of the ticket, as list tells it: no other is taken out."`
	consent
}

// Help says what it does to whom.
func (queueEvictCommand) Help() string {
	return `Shows whom it hits and since when, where the programs name themselves, asks, and takes this ticket out of the queue. Who had the turn learns it with its next renewal: its context ends, and Done is refused (ErrLockLost). Who waits with Lock draws a new ticket at the end of the line.

Exit codes: 0 evicted; 1 failed, or not agreed to; 2 usage; 3 no such ticket; 4 it left meanwhile.`
}

// Run implements the command.
func (cmd *queueEvictCommand) Run(ctx context.Context, c *console) error {
	t, queue, err := cmd.open(ctx)
	if err == nil {
		err = t.carried(ctx)
	}
	if err != nil {
		return err
	}
	list, err := cmd.entries(ctx, queue)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(list, func(d entryDocument) bool { return d.Number == cmd.Number })
	if n < 0 {
		return outcome{exitNothing, fmt.Errorf("no ticket %d stands in the queue of %q", cmd.Number, cmd.Entity)}
	}
	now, d, number := time.Now(), list[n], fmt.Sprint(cmd.Number)
	return c.force(ctx, cmd.Yes, cmd.Output, forced{
		facts:    [][2]string{{"ticket", number}, {"queue", cmd.Entity}, {"owner", shown.Holder(d.Owner, false)}, {"since", since(d.Since, now)}, {"state", d.stands()}, {"until", moment(d.Until, now)}},
		question: "Take it out?", gone: "the ticket left meanwhile",
		act:  func() error { return queue.Break(ctx, cmd.Entity, cmd.Number) },
		done: "evicted", name: number, document: d,
	})
}
