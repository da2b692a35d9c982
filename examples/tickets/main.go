// Command tickets is a shop for seats. A seat is held for a while, and is free again
// unless it is paid; an e-mail address is one customer's; invoices have numbers without
// gaps; a customer has four seats at most, over all orders.
//
//	go run ./examples/tickets
//	go run ./examples/tickets -servers 5 -customers 500 -kills 25
//
// Several servers work on the same tables, customers want the same few seats, and servers
// are killed (SIGKILL) with requests under way, and started again. At the end the tables
// are compared with each other, and with what customers were told. With -customers 600
// -kills 15, on two cores beside other work: 3492 requests, half of them within 26 ms, 99 %
// within 360 ms, and nothing wrong. Who pays while a dead server was giving the seats
// back waits for its lease.
//
// What to look at: shop.go, which is all that the shop needs of its own. The rest puts it
// to the test: open.go opens its tables, server.go is a server's process
// (examples/internal/crew), fleet.go kills and starts it, customers.go are the customers,
// audit.go says what "right" means.
//
// It uses the embedded engine, or the endpoint in AWS_ENDPOINT_URL_DYNAMODB.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// settings of a run; servers get them by flags.
type settings struct {
	servers, customers, kills int
	hold                      time.Duration
	server                    string // set in a server's process: its name
	tables                    string // set in a server's process: how the tables' names begin
}

func main() { crew.Main(run) }

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	var s settings
	p := crew.Program{
		Name:  "tickets",
		About: "Customers hold and pay seats at several servers; all is right when servers are killed.",
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
	fs.IntVar(&s.servers, "servers", 3, "number of server processes")
	fs.IntVar(&s.customers, "customers", 60, "number of customers, who want as many orders four times")
	fs.IntVar(&s.kills, "kills", 9, "how often a server is killed and started again")
	fs.DurationVar(&s.hold, "hold", 300*time.Millisecond, "how long seats are held that are not paid")
	fs.StringVar(&s.server, "server", "", "run as a server of this name (the program starts itself so)")
	fs.StringVar(&s.tables, "tables", "", "how the tables' names begin, for servers")
}

func (s *settings) check() error {
	switch {
	case s.servers < 1 || s.servers > 50:
		return fmt.Errorf("-servers %d: use 1 to 50", s.servers)
	case s.customers < 2 || s.customers > 10_000:
		return fmt.Errorf("-customers %d: use 2 to 10000", s.customers)
	case s.kills < 0 || s.kills > s.customers:
		return fmt.Errorf("-kills %d: use 0 to the number of customers", s.kills)
	case s.hold <= 0:
		return fmt.Errorf("-hold %v: use more than 0", s.hold)
	}
	return nil
}
