// Command hashchain lets several real processes extend one SHA-256 hash chain
// that is kept in one item. Each must read the chain before it can extend it,
// so a single lost update breaks it. By default one of them is killed while it
// holds the lock: the others go on when its lease is over.
//
//	go run ./examples/hashchain
//	go run ./examples/hashchain -workers 10 -links 200 -work 2ms -kill=false
//
// Look at extend in worker.go for the lock, and at chain.go for the proof. The
// program starts itself as workers (examples/internal/crew). It uses the
// embedded engine, or the endpoint in AWS_ENDPOINT_URL_DYNAMODB.
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

// settings of a run; workers get them by flags.
type settings struct {
	workers int
	links   int
	work    time.Duration
	lease   time.Duration
	kill    bool
	worker  string // set in a worker process
	table   string // set in a worker process
}

func main() { crew.Main(run) }

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	var s settings
	p := crew.Program{
		Name:  "hashchain",
		About: "Processes extend one hash chain under a lock, and the chain is verified.",
		Flags: s.flags, Check: s.check,
	}
	return p.Run(args, errs, func() error {
		if s.worker != "" {
			return crew.Join(ctx, func(ctx context.Context, client *dynamodb.Client) error { return work(ctx, s, client) })
		}
		return demonstrate(ctx, s, out, errs)
	})
}

func (s *settings) flags(fs *flag.FlagSet) {
	fs.IntVar(&s.workers, "workers", 5, "number of worker processes")
	fs.IntVar(&s.links, "links", 60, fmt.Sprintf("length of the chain, at most %d: it is kept in one item", maxLinks))
	fs.DurationVar(&s.work, "work", 10*time.Millisecond, "time that a worker needs under the lock")
	fs.DurationVar(&s.lease, "lease", 2*time.Second, "lease of the lock, at least 1s")
	fs.BoolVar(&s.kill, "kill", true, "kill one worker while it holds the lock")
	fs.StringVar(&s.worker, "worker", "", "run as a worker of this name (the program starts itself so)")
	fs.StringVar(&s.table, "table", "", "the table, for workers")
}

func (s *settings) check() error {
	switch {
	case s.workers < 1 || s.workers > 50:
		return fmt.Errorf("-workers %d: use 1 to 50", s.workers)
	case s.links < 1 || s.links > maxLinks:
		return fmt.Errorf("-links %d: use 1 to %d", s.links, maxLinks)
	case s.work < 0 || s.lease < time.Second:
		return fmt.Errorf("-work %v -lease %v: work cannot be negative, a lease is at least 1s", s.work, s.lease)
	case s.kill && s.workers < 2:
		s.kill = false // somebody must be left to go on
	}
	return nil
}
