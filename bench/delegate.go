package main

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/load"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// delegated is the item as commands see it.
type delegated struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	N       int    `dynamodbav:"n"`
	Padding string `dynamodbav:"padding"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

const (
	delegateName = "delegate"
	mailEnding   = "-mail"
)

// more is a command's argument: what is added, and what makes it long.
type more struct {
	N       int    `json:"n"`
	Padding string `json:"padding,omitempty"`
}

// delegating is changes as commands, which one process carries out for all. The table of
// the items has no sort key, so the mail has one of its own. Arguments have so many bytes
// of padding.
func delegating(padding int) load.Contender {
	argument := more{1, strings.Repeat("x", padding)}
	return load.Contender{
		Name:    delegateName,
		Beside:  []string{mailEnding},
		Unknown: func(err error) bool { return errors.Is(err, repo.ErrOutcomeUnknown) },
		Open: func(ctx context.Context, client *dynamodb.Client, table string) (load.Change, error) {
			items, err := repo.NewTable[delegated](client, table, repo.TableConfig{})
			if err != nil {
				return nil, err
			}
			mail, err := delegate.NewMailTable(client, table+mailEnding, repo.TableConfig{})
			if err != nil {
				return nil, err
			}
			if err := mail.EnsureTable(ctx); err != nil {
				return nil, err
			}
			by, err := optimistic.New(items, optimistic.Config{})
			if err != nil {
				return nil, err
			}
			commands, err := delegate.New(by, delegate.Config{Mail: mail})
			if err != nil {
				return nil, err
			}
			add, err := delegate.Command(commands, "add/v1", func(_ context.Context, item *delegated, a more) (int, error) {
				item.N += a.N
				return item.N, nil
			})
			if err != nil {
				return nil, err
			}
			load.AtEnd(ctx, func() { _ = commands.Close(ctx) })
			return func(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
				inside(ctx)
				_, err := add.Do(ctx, repo.Key{Partition: items[0].ID}, argument)
				return err
			}, nil
		},
	}
}
