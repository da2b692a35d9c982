package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/verify"
	"github.com/dynahold/dynahold/repo"
)

type verifyCommand struct {
	tableFlags
	Files            []string      `arg:"" optional:"" name:"file" complete:"file" help:"Documents with records of the table's stream, and what programs have written down (package history); \"-\" reads standard input. Without a record the stream itself is read."`
	VersionAttribute string        `default:"version" placeholder:"NAME" help:"Attribute of the items that has the tag repo:\"version\"."`
	ClockSkew        time.Duration `default:"1s" help:"By how much clocks of the programs may differ."`
	AllowForeign     bool          `help:"Writers that do not follow the protocol are allowed; their changes are counted."`
}

// Help says what is judged, and how.
func (verifyCommand) Help() string {
	return `Says whether the protocol allows what became of a table's items: it reads the changes of the table's stream, of its last 24 hours or from files, and names the first change of each item that the library cannot have made.

  version   versions grow with each write, by as many changes as it carries
  writers   each write leaves its own id once, and the evidence before it
  tokens    fencing tokens grow
  lease     nobody takes a lock over before its lease is over
  right     who changes an item holds its lock, or nobody does
  once      an operation's id is added once, and is not forgotten early; what
            leaves the item is in a row beside it
  command   the delegated commands of a sender are carried out once, in order
  unique    a unique value is claimed by the item that has it, and no other

and, with what the programs themselves have written down by package history:

  verdict   what was told as not written is not there; what was answered is
  twice     a call has changed an item once
  whole     a transaction has changed all of its items, or none

Files have batches as "aws dynamodbstreams get-records" prints them or as a Lambda handler gets them, or single records, one document behind the other, in any order. The stream must have the view NEW_AND_OLD_IMAGES. Changes that are missing are told as gaps: what went on in them is not known. Values of items are not printed.

Examples:

  dynahold verify orders
  dynahold verify orders night/*.json
  dynahold verify orders calls-*.jsonl

Exit codes: 0 all is allowed; 1 failed; 2 usage; 3 there is no table, stream, file or change; 5 a change is not allowed.`
}

// Run implements the command.
func (cmd *verifyCommand) Run(ctx context.Context, c *console) error {
	if cmd.ClockSkew < 0 {
		return usage("--clock-skew must not be negative")
	}
	in, err := cmd.input(ctx)
	if err != nil {
		return err
	}
	if len(in.Changes) == 0 {
		return outcome{exitNothing, errors.New("there is no change: nothing was verified")}
	}
	cfg, err := cmd.tableConfig()
	if err != nil {
		return err
	}
	// Nothing is sent: it is asked for names alone.
	keys, err := repo.NewKeyTable(dynamodb.New(dynamodb.Options{}), cmd.Table, keyed(verify.KeyNames(in.Changes)), cfg)
	if err != nil {
		return err
	}
	report, writes := verify.Check(keys, verify.Config{Version: cmd.VersionAttribute, Skew: cmd.ClockSkew, Foreign: cmd.AllowForeign}, in.Changes)
	writes.Calls(report, in.Calls)
	report.Dropped = in.Dropped
	if err := cmd.print(c, report); err != nil {
		return err
	}
	if n := len(report.Breaches); n > 0 {
		return outcome{exitFound, fmt.Errorf("items with a change that the protocol does not allow: %d", n)}
	}
	return nil
}

// input is what the files have, and the table's stream if none has changes.
func (cmd *verifyCommand) input(ctx context.Context) (*verify.Input, error) {
	all := &verify.Input{}
	for _, name := range cmd.Files {
		in, err := readFile(name, verify.Read)
		if err != nil {
			return nil, err
		}
		for _, change := range in.Changes {
			if change.Table == "" || change.Table == cmd.Table || strings.HasSuffix(cmd.Table, ":table/"+change.Table) {
				all.Changes = append(all.Changes, change)
			}
		}
		all.Calls, all.Dropped = append(all.Calls, in.Calls...), all.Dropped+in.Dropped
	}
	if len(all.Changes) > 0 || len(cmd.Files) > 0 && len(all.Calls) == 0 {
		return all, nil
	}
	err := cmd.streamed(ctx, all)
	return all, err
}

// streamed adds the changes that the table's stream keeps.
func (cmd *verifyCommand) streamed(ctx context.Context, all *verify.Input) error {
	t, err := cmd.open(ctx)
	if err != nil {
		return err
	}
	s, err := t.stream()
	if err != nil {
		return err
	}
	return s.read(ctx, func(r streamtypes.Record) error {
		change, err := changeIn(r)
		all.Changes = append(all.Changes, change)
		return err
	})
}

// changeIn is a record of a stream as a change.
func changeIn(r streamtypes.Record) (verify.Change, error) {
	d := r.Dynamodb
	keys, err := attributevalue.FromDynamoDBStreamsMap(d.Keys)
	if err != nil {
		return verify.Change{}, err
	}
	c := verify.Of(keys)
	c.Sequence, c.Time, c.ByTTL = aws.ToString(d.SequenceNumber), aws.ToTime(d.ApproximateCreationDateTime), byTTL(r)
	if c.Before, err = attributevalue.FromDynamoDBStreamsMap(d.OldImage); err == nil {
		c.After, err = attributevalue.FromDynamoDBStreamsMap(d.NewImage)
	}
	return c, err
}

func (cmd *verifyCommand) print(c *console, r *verify.Report) error {
	if cmd.Output == "json" {
		return c.printJSON(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d changes of %d items: %d writes, %d holds of locks; %d calls\n", r.Changes, r.Items, r.Writes, r.Holds, r.Calls)
	if r.Dropped > 0 {
		fmt.Fprintf(&b, "%d calls are not in the programs' records\n", r.Dropped)
	}
	if r.Gaps > 0 {
		fmt.Fprintf(&b, "changes are missing in %d places: what went on there is not known\n", r.Gaps)
	}
	if r.Foreign > 0 {
		fmt.Fprintf(&b, "%d changes by writers that do not follow the protocol\n", r.Foreign)
	}
	if len(r.Breaches) == 0 {
		b.WriteString("the protocol allows all of them\n")
		return c.print(b.String())
	}
	var rows [][]string
	for _, breach := range r.Breaches {
		rows = append(rows, []string{breach.Time.UTC().Format(time.RFC3339), breach.Item, breach.Rule, breach.Says, breach.Sequence})
	}
	b.WriteByte('\n')
	b.WriteString(tableText([]string{"time", "item", "rule", "what", "sequence number"}, rows))
	return c.print(b.String())
}
