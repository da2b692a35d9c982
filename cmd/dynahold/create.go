package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/repo"
)

type tableCreateCommand struct {
	awsFlags
	Table     string `arg:"" help:"Name of the table."`
	For       string `enum:"items,mail,mutex,once,ticket,semaphore,jobs" default:"items" help:"What it is for: items (needs --partition), mail (of delegate), mutex, once, ticket, semaphore, jobs (which may share one with semaphore)."`
	Partition string `placeholder:"NAME[:TYPE]" help:"Partition key of items; TYPE is S, N or B, and S if it is not said."`
	Sort      string `placeholder:"NAME[:TYPE]" help:"Sort key of items."`

	Index []string `sep:"none" placeholder:"INDEX=PARTITION[:TYPE][,SORT[:TYPE]]" help:"Secondary index of items, with all attributes; may be given again."`
	consent
}

// Help says what is made.
func (tableCreateCommand) Help() string {
	return `Prints the schema, asks, and creates the table as the library's EnsureTable does: billed per request, with TTL. Anything else, such as encryption, backups or tags, is for your own templates (docs/tables.md).

Exit codes: 0 created; 1 failed, or not agreed to; 2 usage; 4 the table is there already.`
}

// schema is the primary key that the flags say.
func (cmd *tableCreateCommand) schema() (key repo.KeySchema, err error) {
	if cmd.For != "items" && (cmd.Partition != "" || cmd.Sort != "") {
		return key, usage("a table for %s has the keys that the library gives it: leave --partition and --sort away", cmd.For)
	}
	switch cmd.For {
	case "mail":
		key.Partition.Name, key.Sort.Name = "mailbox", "slot"
	case "mutex":
		key.Partition.Name = "name"
	case "once":
		key.Partition.Name = "id"
	case "ticket":
		key.Partition.Name = "queue"
	case "semaphore", "jobs":
		key.Partition.Name, key.Sort.Name = "pk", "sk"
	default:
		if cmd.Partition == "" {
			return key, usage("say which attribute is the key: --partition NAME")
		}
		if key.Partition, err = keyAttribute(cmd.Partition); err == nil && cmd.Sort != "" {
			key.Sort, err = keyAttribute(cmd.Sort)
		}
	}
	if key.Partition.Type == "" {
		key.Partition.Type, key.Sort.Type = types.ScalarAttributeTypeS, types.ScalarAttributeTypeS
	}
	return key, err
}

// indexes are those that the flags say.
func (cmd *tableCreateCommand) indexes() (all []repo.IndexSchema, err error) {
	if cmd.For != "items" && len(cmd.Index) > 0 {
		return nil, usage("a table for %s needs no index: leave --index away", cmd.For)
	}
	for _, text := range cmd.Index {
		name, keys, is := strings.Cut(text, "=")
		if !is || keys == "" {
			return nil, usage("an index is INDEX=PARTITION[:TYPE][,SORT[:TYPE]], not %q", text)
		}
		x := repo.IndexSchema{Name: name}
		partition, sort, sorted := strings.Cut(keys, ",")
		if x.Partition, err = keyAttribute(partition); err == nil && sorted {
			x.Sort, err = keyAttribute(sort)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// keyAttribute reads NAME or NAME:TYPE. A name may have a colon in it, where its type follows.
func keyAttribute(text string) (repo.KeyAttribute, error) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return repo.KeyAttribute{Name: text, Type: types.ScalarAttributeTypeS}, nil
	}
	a := repo.KeyAttribute{Name: text[:i], Type: types.ScalarAttributeType(text[i+1:])}
	if !slices.Contains(a.Type.Values(), a.Type) {
		return a, usage("a key is NAME or NAME:TYPE, with the type S, N or B, not %q", a.Type)
	}
	return a, nil
}

// Run implements the command.
func (cmd *tableCreateCommand) Run(ctx context.Context, c *console) error {
	key, err := cmd.schema()
	if err != nil {
		return err
	}
	client, cfg, err := cmd.service(ctx)
	if err != nil {
		return err
	}
	if cfg.Indexes, err = cmd.indexes(); err != nil {
		return err
	}
	table, err := repo.NewKeyTable(client, cmd.Table, key, cfg)
	if err != nil {
		return err
	}
	_, err = describe(ctx, client, cmd.Table)
	switch {
	case err == nil:
		return outcome{exitMoved, fmt.Errorf("table %q is there already: table describe shows it; nothing was changed", cmd.Table)}
	case !errors.As(err, new(*types.ResourceNotFoundException)):
		return err
	}
	d := schemaDocument{Table: cmd.Table, PartitionKey: keyName(key.Partition), SortKey: keyName(key.Sort), TTL: cmp.Or(cfg.Attributes.TTL, "expiresAt"), Billing: string(types.BillingModePayPerRequest)}
	for _, x := range cfg.Indexes {
		d.Indexes = append(d.Indexes, indexDocument{x.Name, keyName(x.Partition), keyName(x.Sort)})
	}
	if err := c.confirm(ctx, cmd.Yes, d.facts(), "Create it?"); err != nil {
		return err
	}
	if err := table.EnsureTable(ctx); err != nil {
		return outcome{exitFailed, fmt.Errorf("%w; the table may be there, with its TTL or without: table describe shows it", err)}
	}
	return c.printDone(cmd.Output, "created", cmd.Table, d)
}
