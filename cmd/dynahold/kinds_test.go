package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
)

// kinds makes tables of all kinds, and of items with the keys of each.
func (n *night) kinds() {
	n.Helper()
	ids, err := once.New(n.client, "ids", once.Config{})
	n.is(err)
	n.is(ids.EnsureTable(n.Context()))
	_, err = once.Do(n.Context(), ids, "1", func(context.Context, once.Run) (int, error) { return 1, nil })
	n.is(err)
	for name, key := range map[string]repo.KeySchema{"shop": ofJobs.schema, "emptyshop": ofJobs.schema, "people": ofLocks.schema, "tills": ofQueues.schema, "sorted": keyed("id", "at")} {
		table, err := repo.NewKeyTable(n.client, name, key, repo.TableConfig{})
		n.is(err)
		n.is(table.EnsureTable(n.Context()))
	}
	n.put("shop", map[string]types.AttributeValue{"pk": word("ORDER#1"), "sk": word("HEAD"), "total": word("5")})
	n.put("people", map[string]types.AttributeValue{"name": word("Ann")})
	n.put("tills", map[string]types.AttributeValue{"queue": word("a")})
	n.put("sorted", map[string]types.AttributeValue{"id": word("a"), "at": word("b")})
}

// A command says what kind of table it was given, where that is another one than it is for,
// and writes nothing there.
func TestCommandsAndKindsOfTables(t *testing.T) {
	n := newNight(t)
	n.kinds()
	const locks, queues, jobs, ids, items = "named locks (package mutex)", "queues (package ticket)", "permits and jobs (packages semaphore and jobs)", "ids of operations (package once)", "one of items"
	tables := map[string]string{"locks": locks, "queues": queues, "jobs": jobs, "ids": ids, "orders": items, "shop": items, "people": items, "tills": items, "sorted": items}
	commands := map[string]struct {
		kind string
		none map[string]string // of other tables: what they answer
	}{
		"jobs list TABLE":                     {kind: jobs},
		"jobs list TABLE x":                   {kind: jobs},
		"jobs dead TABLE x":                   {kind: jobs},
		"permits list TABLE x":                {kind: jobs},
		"resources pause TABLE x --yes":       {kind: jobs},
		"resources resume TABLE x --yes":      {kind: jobs},
		"queue list TABLE x":                  {kind: queues},
		"locks list TABLE":                    {kind: locks},
		"locks list TABLE -o json":            {kind: locks},
		"locks watch TABLE --every 100ms":     {kind: locks},
		"queue list TABLE x --namespace none": {kind: queues},
	}
	before := map[string]int{}
	for table := range tables {
		before[table] = n.count(table)
	}
	for line, command := range commands {
		for table, kind := range tables {
			isLocks := command.kind == locks
			if kind == command.kind || isLocks && kind != jobs && kind != queues {
				continue
			}
			line := strings.Replace(line, "TABLE", table, 1)
			code, out, errs := n.call("", line)
			if code == exitOK || out != "" || !strings.Contains(errs, kind) || !strings.Contains(errs, table) {
				t.Errorf("%s: code %d, %s%s, want %s", line, code, out, errs, kind)
			}
		}
	}
	for table, rows := range before {
		if now := n.count(table); now != rows {
			t.Errorf("table %s had %d rows, and has %d", table, rows, now)
		}
	}
	for _, line := range []string{"locks list shop", "locks list orders", "locks list ids", "locks list emptyshop", "locks list sorted", "locks list people", "jobs list emptyshop", "queue list queues nothing"} {
		n.says(line, exitOK)
	}
	n.put("jobs", map[string]types.AttributeValue{"pk": word("ORDER#1"), "sk": word("HEAD")}) // of another program
	n.says("locks list jobs", exitUsage, jobs)
	for _, line := range []string{"jobs show TABLE a b", "jobs cancel TABLE a b --yes", "jobs break TABLE a b --token 1 --yes", "jobs requeue TABLE a b", "jobs discard TABLE a b --yes", "permits break TABLE a b --yes", "queue evict TABLE a --number 1 --yes"} {
		n.says(strings.Replace(line, "TABLE", "locks", 1), exitUsage, locks)
	}
}

// What a table is tells no share of its rows: the one row of permits stands behind many
// others, and a resource without jobs in a table of many items is still one without jobs.
func TestKindsOfTablesWithManyRows(t *testing.T) {
	n := newNight(t)
	for name, key := range map[string]repo.KeySchema{"mall": ofJobs.schema, "counters": ofQueues.schema} {
		table, err := repo.NewKeyTable(n.client, name, key, repo.TableConfig{})
		n.is(err)
		n.is(table.EnsureTable(t.Context()))
	}
	for i := range 40 {
		n.put("mall", map[string]types.AttributeValue{"pk": word(fmt.Sprint("!ORDER#", i)), "sk": word("HEAD")})
		n.put("counters", map[string]types.AttributeValue{"queue": word(fmt.Sprint("!", i))})
	}
	permits, err := semaphore.New(n.client, "mall", semaphore.Config{})
	n.is(err)
	held, err := permits.Acquire(t.Context(), "till")
	n.is(err)
	queue, err := ticket.New(n.client, "counters", ticket.Config{})
	n.is(err)
	turn, err := queue.Lock(t.Context(), "printer")
	n.is(err)
	n.says("locks list mall", exitUsage, ofJobs.words)
	n.says("locks list counters", exitUsage, ofQueues.words)
	n.says("permits list mall till", exitOK, held.ID())
	n.says("jobs list mall till", exitOK, "no job")
	n.says("jobs dead mall till", exitOK, "no dead letter")
	n.says("queue list counters nothing", exitOK, "nobody stands")
	n.is(turn.Done(t.Context()))
	n.is(held.Release(t.Context()))
}

func (n *night) count(table string) int {
	n.Helper()
	out, err := n.client.Scan(n.Context(), scanOf(table))
	n.is(err)
	return len(out.Items)
}

func scanOf(table string) *dynamodb.ScanInput { return &dynamodb.ScanInput{TableName: &table} }
