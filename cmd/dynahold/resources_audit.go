package main

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/jobs"
)

type resourcesAuditCommand struct{ tableFlags }

// Help says what is compared.
func (resourcesAuditCommand) Help() string {
	return `Counts the rows of every resource, and compares them with its counters. It may run beside work, and reads the whole table. A resource that changed all the time is told as such, and nothing was found of it.

Exit codes: 0 all is right; 1 failed; 2 usage; 3 there is no table; 5 counters are not those of the rows.`
}

type tallyDocument struct {
	resourceDocument
	Counted  countedDocument `json:"counted"`
	Changing bool            `json:"changing"` // it changed all the time: the two do not belong together
	OK       bool            `json:"ok"`
}

type countedDocument struct {
	Queued  int `json:"queued"`
	Later   int `json:"later"`
	Running int `json:"running"` // jobs
	Permits int `json:"permits"`
	Dead    int `json:"dead"`
}

// Run implements the command.
func (cmd *resourcesAuditCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.work(ctx)
	if err != nil {
		return err
	}
	list, rows, wrong := []tallyDocument{}, [][]string(nil), 0
	unread := collect(all.Audit(ctx), func(t jobs.Tally) {
		n := t.Counted
		list = append(list, tallyDocument{resourceDocumentOf(t.Resource), countedDocument{n.Queued, n.Later, n.Running, n.Permits, n.Dead}, t.Changing, t.OK()})
		verdict := "ok"
		switch {
		case !t.OK():
			verdict = "wrong"
			wrong++
		case t.Changing:
			verdict = "changed all the time"
		}
		both := func(counter, counted int) string { return fmt.Sprintf("%d / %d", counter, counted) }
		rows = append(rows, []string{t.Name, both(t.Queued, n.Queued), both(t.Later, n.Later), both(t.Running, n.Running+n.Permits), both(t.Dead, n.Dead), verdict})
	})
	if err := all.nothing(ctx, len(list), unread); err != nil {
		return err
	}
	head := []string{"resource", "queued / counted", "later", "running", "dead", "verdict"}
	if err := c.printList(cmd.Output, list, head, rows, "no resource was ever used", unread); err != nil || wrong == 0 {
		return err
	}
	return outcome{exitFound, fmt.Errorf("counters that are not those of the rows: %d resources", wrong)}
}
