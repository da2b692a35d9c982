package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/repo"
)

type commandCommands struct {
	List    commandListCommand    `cmd:"" help:"Say who leads an item, and list the commands that wait for it, the oldest first."`
	TakeOut commandTakeOutCommand `cmd:"" help:"Take out commands that nobody carries out, such as those that no program knows any more."`
}

// mailArguments name an item whose commands wait.
type mailArguments struct {
	itemArguments
	Mail string `placeholder:"TABLE" help:"The table of the mail, where the programs set delegate.Config.Mail."`
}

// mails are those of the item.
func (a *mailArguments) mails(ctx context.Context) (t *opened, mails *delegate.Mails, key repo.Key, err error) {
	t, keys, key, _, err := a.openItem(ctx)
	if err != nil {
		return nil, nil, key, err
	}
	var beside *repo.KeyTable
	if a.Mail != "" {
		if beside, err = delegate.NewMailTable(t.client, a.Mail, t.cfg); err != nil {
			return nil, nil, key, err
		}
	}
	if mails, err = delegate.MailsOf(keys, beside); err != nil && beside == nil {
		err = usage("%w; where the programs have one, name it by --mail", err)
	}
	return t, mails, key, err
}

type stateDocument struct {
	Leader     string            `json:"leader,omitempty"`
	Partitions int               `json:"partitions"`
	Oldest     *time.Time        `json:"oldest"` // null: nothing waits
	Waiting    []waitingDocument `json:"waiting"`
}

type waitingDocument struct {
	Slot     string    `json:"slot"`
	Number   int64     `json:"number"`
	Commands []string  `json:"commands"`
	Sent     time.Time `json:"sent"`
	Late     bool      `json:"late"`
}

// stands says who carries it out.
func (d waitingDocument) stands() string {
	if d.Late {
		return "only its sender carries it out"
	}
	return "waits for who leads"
}

func stateDocumentOf(s delegate.State) stateDocument {
	d := stateDocument{Leader: s.Leader, Partitions: s.Partitions, Waiting: []waitingDocument{}}
	for _, w := range s.Waiting {
		d.Waiting = append(d.Waiting, waitingDocument{w.Slot, w.Number, w.Commands, w.Sent.UTC(), w.Late})
	}
	if len(d.Waiting) > 0 {
		d.Oldest = &d.Waiting[0].Sent
	}
	return d
}

type commandListCommand struct{ mailArguments }

// Run implements the command.
func (cmd *commandListCommand) Run(ctx context.Context, c *console) error {
	_, mails, key, err := cmd.mails(ctx)
	if err != nil {
		return err
	}
	state, err := mails.Of(ctx, key)
	if err != nil {
		return err
	}
	d := stateDocumentOf(state)
	if cmd.Output == "json" {
		return c.printJSON(d)
	}
	leader := "nobody"
	if d.Leader != "" {
		leader = fmt.Sprintf("%s, over %d partitions of mail", d.Leader, d.Partitions)
	}
	if err := c.print(factsText([][2]string{{"item", keyWords(key)}, {"leads", leader}}) + "\n"); err != nil {
		return err
	}
	now, rows := time.Now(), [][]string(nil)
	for _, w := range d.Waiting {
		rows = append(rows, []string{w.Slot, fmt.Sprint(w.Number), strings.Join(w.Commands, ", "), moment(w.Sent, now), w.stands()})
	}
	return c.printList(cmd.Output, d, []string{"slot", "number", "commands", "sent", "state"}, rows, "no commands wait", nil)
}

type commandTakeOutCommand struct {
	mailArguments
	Slot   string `required:"" placeholder:"SLOT" help:"Slot of the sender, as list tells it."`
	Number int64  `required:"" placeholder:"NUMBER" help:"Number of the commands, as list tells it: no others are taken out."`
	consent
}

// Help says what it does to whom.
func (commandTakeOutCommand) Help() string {
	return `Shows which commands it hits and since when they wait, asks, and sees to it that they are not applied any more. A sender who lives is told so; nothing is applied by halves.

Exit codes: 0 taken out; 1 failed, or not agreed to; 2 usage; 3 they do not wait; 4 they were carried out meanwhile.`
}

// Run implements the command.
func (cmd *commandTakeOutCommand) Run(ctx context.Context, c *console) error {
	t, mails, key, err := cmd.mails(ctx)
	if err == nil {
		err = t.carried(ctx)
	}
	if err != nil {
		return err
	}
	state, err := mails.Of(ctx, key)
	if err != nil {
		return err
	}
	list := stateDocumentOf(state).Waiting
	n := slices.IndexFunc(list, func(d waitingDocument) bool { return d.Slot == cmd.Slot && d.Number == cmd.Number })
	if n < 0 {
		return outcome{exitNothing, fmt.Errorf("no commands number %d of slot %s wait for the item %s", cmd.Number, cmd.Slot, keyWords(key))}
	}
	d := list[n]
	return c.force(ctx, cmd.Yes, cmd.Output, forced{
		facts:    [][2]string{{"item", keyWords(key)}, {"commands", strings.Join(d.Commands, ", ")}, {"sent", moment(d.Sent, time.Now())}, {"state", d.stands()}},
		question: "Take them out?", gone: "they were carried out meanwhile",
		act:  func() error { return mails.TakeOut(ctx, key, cmd.Slot, cmd.Number) },
		done: "taken out", name: fmt.Sprintf("%s %d", cmd.Slot, cmd.Number), document: d,
	})
}
