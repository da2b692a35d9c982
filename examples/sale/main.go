// Command sale is a flash sale: several processes sell the numbered pieces of one edition,
// all at once, while they are killed. All change one item, as commands (package delegate),
// so that one write carries the sales of all who wait.
//
//	go run ./examples/sale
//	go run ./examples/sale -processes 16 -customers 2000 -kills 30
//
// A process that was killed (SIGKILL), often the one that led, is started again and serves
// its customers from the first on: nobody knows whose sale was made. Each customer's id
// makes it one sale (Once). At the end the item is compared with what customers were told:
// nothing lost, nothing twice.
//
// What to look at: sale.go is all that a seller needs. demo.go kills and starts, audit.go
// says what "right" means.
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

// settings of a run; sellers get them by flags.
type settings struct {
	processes, customers, pieces, kills int
	seller                              int    // set in a seller's process: which one, from 1
	table                               string // set in a seller's process
}

func main() { crew.Main(run) }

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	var s settings
	p := crew.Program{
		Name:  "sale",
		About: "Processes sell one edition, are killed and started again; no piece is lost, or sold twice.",
		Flags: s.flags, Check: s.check,
	}
	return p.Run(args, errs, func() error {
		if s.seller > 0 {
			return crew.Join(ctx, func(ctx context.Context, client *dynamodb.Client) error { return serve(ctx, s, client) })
		}
		return demonstrate(ctx, s, out, errs)
	})
}

func (s *settings) flags(fs *flag.FlagSet) {
	fs.IntVar(&s.processes, "processes", 6, "number of processes that sell")
	fs.IntVar(&s.customers, "customers", 300, "number of customers, who want a piece each")
	fs.IntVar(&s.pieces, "pieces", 200, "number of pieces")
	fs.IntVar(&s.kills, "kills", 12, "how often a process is killed and started again")
	fs.IntVar(&s.seller, "seller", 0, "run as the seller of this number (the program starts itself so)")
	fs.StringVar(&s.table, "table", "", "the table, for sellers")
}

func (s *settings) check() error {
	switch {
	case s.processes < 1 || s.processes > 50:
		return fmt.Errorf("-processes %d: use 1 to 50", s.processes)
	case s.customers < s.processes || s.customers > 5_000:
		return fmt.Errorf("-customers %d: use the number of processes to 5000", s.customers)
	case s.pieces < 1:
		return fmt.Errorf("-pieces %d: use 1 or more", s.pieces)
	case s.kills < 0 || s.kills > s.customers:
		return fmt.Errorf("-kills %d: use 0 to the number of customers", s.kills)
	}
	return nil
}
