package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// edition is what is sold. The mail of commands lies beside it, for its table has a sort key.
type edition struct {
	Shop    string   `dynamodbav:"shop" repo:"pk"`
	Name    string   `dynamodbav:"name" repo:"sk"`
	Pieces  int      `dynamodbav:"pieces"`
	Owners  []string `dynamodbav:"owners"` // of the pieces 1, 2, 3 ...
	Version int64    `dynamodbav:"version" repo:"version"`
}

var print1 = repo.Key{Partition: "gallery", Sort: "print 1"}

var errSoldOut = errors.New("sold out")

// purchase is a command's arguments, and piece what comes of it.
type purchase struct{ Customer string }

type piece struct{ Number int }

// buy is the command. It may run in any process, for any customer, more than once.
func buy(_ context.Context, e *edition, p purchase) (piece, error) {
	if len(e.Owners) == e.Pieces {
		return piece{}, errSoldOut
	}
	e.Owners = append(e.Owners, p.Customer)
	return piece{len(e.Owners)}, nil
}

type shop struct {
	editions *optimistic.Repository[edition]
	commands *delegate.Commands[edition]
	buy      *delegate.Call[purchase, piece]
}

func open(client *dynamodb.Client, name string) (s shop, err error) {
	table, err := repo.NewTable[edition](client, name, repo.TableConfig{})
	if err == nil {
		s.editions, err = optimistic.New(table, optimistic.Config{})
	}
	if err == nil {
		s.commands, err = delegate.New(s.editions, delegate.Config{Errors: map[string]error{"soldOut": errSoldOut}})
	}
	if err == nil {
		s.buy, err = delegate.Command(s.commands, "buy/v1", buy)
	}
	return s, err
}

// verdict is what a customer was told.
type verdict struct {
	Customer string `json:"customer"`
	Piece    int    `json:"piece,omitempty"`
	Before   bool   `json:"before,omitempty"` // it has a piece, by a sale whose answer was lost
	SoldOut  bool   `json:"soldOut,omitempty"`
}

// ask sells a customer a piece. What nobody knows is asked again: the id makes it one sale.
func (s shop) ask(ctx context.Context, customer string) (v verdict, err error) {
	v.Customer = customer
	for {
		got, err := s.buy.Once(customer).Do(ctx, print1, purchase{customer})
		switch {
		case err == nil:
			v.Piece = got.Number
		case errors.Is(err, delegate.ErrRepeated):
			v.Before = true
		case errors.Is(err, errSoldOut):
			v.SoldOut = true
		case errors.Is(err, repo.ErrOutcomeUnknown) && ctx.Err() == nil:
			continue
		default:
			return v, err
		}
		return v, nil
	}
}

// atOnce is how many customers a process serves at a time.
const atOnce = 4

// serve is a seller's process: it serves its customers, and ends.
func serve(ctx context.Context, s settings, client *dynamodb.Client) error {
	shop, err := open(client, s.table)
	if err != nil {
		return err
	}
	err = crew.Each(ctx, atOnce, s.customersOf(s.seller), func(ctx context.Context, customer string) error {
		v, err := shop.ask(ctx, customer)
		if err == nil {
			crew.Say(v)
		}
		return err
	})
	return errors.Join(err, shop.commands.Close(ctx))
}

func (s settings) customersOf(seller int) (all []string) {
	for n := seller; n <= s.customers; n += s.processes {
		all = append(all, fmt.Sprintf("c%d", n))
	}
	return all
}
