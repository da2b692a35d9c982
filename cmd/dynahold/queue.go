package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/ticket"
)

type queueCommands struct {
	List queueListCommand `cmd:"" help:"List who stands in the queue of an entity, in the order of service."`
}

type queueListCommand struct {
	awsFlags
	Table     string `arg:"" help:"Name or ARN of the table."`
	Entity    string `arg:"" help:"What is queued for."`
	Namespace string `placeholder:"NAME" help:"Namespace of the programs (ticket.Config.Namespace)."`
}

type entryDocument struct {
	Number  int64     `json:"number"`
	ID      string    `json:"id"`
	Until   time.Time `json:"until"`
	Expired bool      `json:"expired"`
	Holds   bool      `json:"holds"`
}

// Run implements the command.
func (cmd *queueListCommand) Run(ctx context.Context, c *console) error {
	client, cfg, err := cmd.service(ctx)
	if err != nil {
		return err
	}
	queue, err := ticket.New(client, cmd.Table, ticket.Config{Namespace: cmd.Namespace, Table: cfg})
	if err != nil {
		return err
	}
	entries, err := queue.List(ctx, cmd.Entity)
	if err != nil {
		return err
	}
	now, list, rows, taken := time.Now(), []entryDocument{}, [][]string(nil), false
	for _, e := range entries {
		state := "waits"
		d := entryDocument{Number: e.Number, ID: e.ID, Until: e.Until.UTC(), Expired: e.Expired, Holds: !e.Expired && !taken}
		switch {
		case e.Expired:
			state = "expired: the next one passes it over"
		case d.Holds:
			state, taken = "has the turn", true
		}
		list = append(list, d)
		rows = append(rows, []string{fmt.Sprint(e.Number), e.ID, state, moment(e.Until, now)})
	}
	if cmd.Output == "json" {
		return c.printJSON(list)
	}
	if len(rows) == 0 {
		_, err = fmt.Fprintln(c.out, "nobody stands in the queue")
		return err
	}
	return c.printTable([]string{"number", "entry", "state", "until"}, rows)
}
