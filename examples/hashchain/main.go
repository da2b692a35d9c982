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
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	s, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case s.worker != "":
		err = work(ctx, s)
	default:
		err = demonstrate(ctx, s, out, errs)
	}
	if err != nil {
		fmt.Fprintln(errs, "hashchain:", err)
		return 1
	}
	return 0
}

func parse(args []string, errs io.Writer) (s settings, err error) {
	fs := flag.NewFlagSet("hashchain", flag.ContinueOnError)
	fs.SetOutput(errs)
	fs.Usage = func() {
		fmt.Fprintln(errs, "Processes extend one hash chain under a lock, and the chain is verified.\n\nFlags:")
		fs.PrintDefaults()
	}
	fs.IntVar(&s.workers, "workers", 5, "number of worker processes")
	fs.IntVar(&s.links, "links", 60, fmt.Sprintf("length of the chain, at most %d: it is kept in one item", maxLinks))
	fs.DurationVar(&s.work, "work", 10*time.Millisecond, "time that a worker needs under the lock")
	fs.DurationVar(&s.lease, "lease", 2*time.Second, "lease of the lock, at least 1s")
	fs.BoolVar(&s.kill, "kill", true, "kill one worker while it holds the lock")
	fs.StringVar(&s.worker, "worker", "", "run as a worker of this name (the program starts itself so)")
	fs.StringVar(&s.table, "table", "", "the table, for workers")
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	switch {
	case fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case s.workers < 1 || s.workers > 50:
		err = fmt.Errorf("-workers %d: use 1 to 50", s.workers)
	case s.links < 1 || s.links > maxLinks:
		err = fmt.Errorf("-links %d: use 1 to %d", s.links, maxLinks)
	case s.work < 0 || s.lease < time.Second:
		err = fmt.Errorf("-work %v -lease %v: work cannot be negative, a lease is at least 1s", s.work, s.lease)
	case s.kill && s.workers < 2:
		s.kill = false // somebody must be left to go on
	}
	if err != nil {
		fmt.Fprintln(errs, "hashchain:", err)
	}
	return s, err
}
