// Command orders is an HTTP service with products, customers and orders. An order of
// several products is one transaction: stock, the customer's money, the order itself
// and a notice for the warehouse are written together, or none of them. A request
// comes with an Idempotency-Key, so that a client which has no answer may ask again.
// A key belongs to its customer, and to the request that it came with.
//
//	go run ./examples/orders
//	go run ./examples/orders -servers 8 -clients 64 -n 2000
//
// Several servers work on the same tables, clients buy, and servers are killed with
// requests under way. At the end stock and money are recomputed from the orders.
//
// What to look at, in this order: shop.go, the types and their repositories;
// orders.go, the transactions; api.go, the requests; answers.go, what clients are told
// of errors; server.go, its limits; relay.go, how notices reach the warehouse. The rest
// puts it to the test: server.go is a server's process, too (examples/internal/crew),
// load.go the clients, warehouse.go who gets the notices, demo.go the whole, audit.go
// what "right" means.
//
// It uses the embedded engine, or the endpoint in AWS_ENDPOINT_URL_DYNAMODB.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// settings of a run; servers get them by flags.
type settings struct {
	servers, clients, n int
	kill                bool
	server              string // set in a server's process: its name
	tables              string // set in a server's process: how the tables' names begin
	warehouse           string // set in a server's process: the URL that takes notices
}

func main() { crew.Main(run) }

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	var s settings
	p := crew.Program{
		Name:  "orders",
		About: "Clients buy from several servers; stock and money are right when servers are killed.",
		Flags: s.flags, Check: s.check,
	}
	return p.Run(args, errs, func() error {
		if s.server != "" {
			return crew.Join(ctx, func(ctx context.Context, client *dynamodb.Client) error { return serve(ctx, s, client) })
		}
		return demonstrate(ctx, s, out, errs)
	})
}

func (s *settings) flags(fs *flag.FlagSet) {
	fs.IntVar(&s.servers, "servers", 4, "number of server processes")
	fs.IntVar(&s.clients, "clients", 16, "number of clients that buy side by side")
	fs.IntVar(&s.n, "n", 240, "number of orders")
	fs.BoolVar(&s.kill, "kill", true, "kill two servers with requests under way")
	fs.StringVar(&s.server, "server", "", "run as a server of this name (the program starts itself so)")
	fs.StringVar(&s.tables, "tables", "", "how the tables' names begin, for servers")
	fs.StringVar(&s.warehouse, "warehouse", "", "URL that takes notices, for servers")
}

func (s *settings) check() error {
	switch {
	case s.servers < 1 || s.servers > 50:
		return fmt.Errorf("-servers %d: use 1 to 50", s.servers)
	case s.clients < 1 || s.clients > 1000:
		return fmt.Errorf("-clients %d: use 1 to 1000", s.clients)
	case s.n < 1:
		return fmt.Errorf("-n %d: use at least 1", s.n)
	case s.servers < 3:
		s.kill = false // somebody must be left to go on
	}
	return nil
}
