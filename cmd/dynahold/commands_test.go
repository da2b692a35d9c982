package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

type print struct {
	Shop    string `dynamodbav:"shop" repo:"pk"`
	Name    string `dynamodbav:"name" repo:"sk"`
	Sold    int    `dynamodbav:"sold"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// dying is the client of a process that reaches nothing any more once its mail is put.
type dying struct {
	*dynamodb.Client
	dead atomic.Bool
}

var errDied = errors.New("this process is dead")

func (d *dying) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if d.dead.Load() {
		return nil, errDied
	}
	return d.Client.GetItem(ctx, in, o...)
}

func (d *dying) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := d.Client.UpdateItem(ctx, in, o...)
	d.dead.Store(true)
	return out, err
}

// Commands of a process that died wait for a leader that is gone, too. The tool shows them,
// and takes them out; with a table of mail, too.
func TestCommandsAreListedAndTakenOut(t *testing.T) {
	for _, beside := range []bool{false, true} {
		t.Run(fmt.Sprint("table of mail: ", beside), func(t *testing.T) {
			n := newNight(t)
			d := &dying{Client: n.client}
			table, err := repo.NewTable[print](d, "prints", repo.TableConfig{})
			n.is(err)
			n.is(table.EnsureTable(t.Context()))
			cfg, flags := delegate.Config{}, ""
			if beside {
				cfg.Mail, err = delegate.NewMailTable(d, "mail", repo.TableConfig{})
				n.is(err)
				n.is(cfg.Mail.EnsureTable(t.Context()))
				flags = " --mail mail"
			}
			item := map[string]types.AttributeValue{"shop": word("s"), "name": word("one"), "sold": number("0"), "version": number("1")}
			n.put("prints", item)
			n.says("commands list prints s one"+flags, exitOK, "nobody", "no commands wait")
			m := func(v map[string]types.AttributeValue) types.AttributeValue {
				return &types.AttributeValueMemberM{Value: v}
			}
			item["writersDelegated"] = m(map[string]types.AttributeValue{"life": word("l"), "lead": word("GONE"), "shards": number("2"), "slots": m(nil)})
			n.put("prints", item)
			items, err := optimistic.New(table, optimistic.Config{})
			n.is(err)
			all, err := delegate.New(items, cfg)
			n.is(err)
			sell, err := delegate.Command(all, "sell/v1", func(_ context.Context, p *print, k int) (int, error) { p.Sold += k; return p.Sold, nil })
			n.is(err)
			if _, err = sell.Do(t.Context(), repo.Key{Partition: "s", Sort: "one"}, 1); !errors.Is(err, repo.ErrOutcomeUnknown) {
				t.Fatal(err)
			}
			n.says("commands list prints s one"+flags, exitOK, "GONE", "over 2 partitions", "sell/v1", "ago", "waits for who leads")
			n.says("commands list prints s one -o json"+flags, exitOK, `"leader": "GONE"`, `"sell/v1"`, `"oldest": "2`, `"late": false`)
			slot := n.lastOf("commands list prints s one"+flags, "slot")
			take := "commands take-out prints s one --slot " + slot + flags
			n.says(take+" --number 7 --yes", exitNothing)
			n.says(take+" --number 1", exitUsage, "--yes", "sell/v1")
			n.says(take+" --number 1 --yes -o json", exitOK, `"taken out"`)
			n.says(take+" --number 1 --yes", exitNothing)
			n.says("commands list prints s one"+flags, exitOK, "no commands wait")
			n.says("commands list prints s two"+flags, exitNothing, "not found")
			n.says(strings.Replace(take, " one ", " two ", 1)+" --number 1 --yes", exitNothing, "not found")
			out, err := n.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("prints"), Key: map[string]types.AttributeValue{"shop": word("s"), "name": word("one")}})
			n.is(err)
			if sold, _ := out.Item["sold"].(*types.AttributeValueMemberN); sold == nil || sold.Value != "0" {
				t.Errorf("%v", out.Item)
			}
		})
	}
}

// Mail does not fit beside items with one key, or numbers: the tool says by what the
// operator names the table that it lies in, not what a program would set.
func TestCommandsOfATableWithoutRoomForMail(t *testing.T) {
	n := newNight(t)
	table, err := repo.NewTable[struct {
		ID      string `dynamodbav:"id" repo:"pk"`
		Version int64  `dynamodbav:"version" repo:"version"`
	}](n.client, "flat", repo.TableConfig{})
	n.is(err)
	n.is(table.EnsureTable(t.Context()))
	n.says("commands list flat one", exitUsage, "--mail", "flat")
	n.says("commands take-out flat one --slot x --number 1 --yes", exitUsage, "--mail", "flat")
}
