// Command deployments deploys services to many environments: one at a time in
// each (two in production), in parallel across them. The work is queued in one
// semaphore table, and several dispatcher processes share it. One of them is
// paused in the middle of a deployment, another killed: others take over when
// the lease is over, and what the paused one writes late is refused by its
// fencing token. Some deployments fail at first and are tried again; one fails
// for good until the operator mends its environment and puts it back from the
// dead letters. At the end everything is compared with the plan.
//
//	go run ./examples/deployments
//	go run ./examples/deployments -dispatchers 5 -n 30 -kill=false -pause=false
//
// Look at dispatch in dispatcher.go for the work, and at demo.go for the
// operator; disturb.go pauses and kills, audit.go checks. The plan is
// plan.jsonl. The program starts itself as dispatchers (examples/internal/crew).
// It uses the embedded engine, or the endpoint in AWS_ENDPOINT_URL_DYNAMODB.
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

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// settings of a run; dispatchers get them by flags.
type settings struct {
	dispatchers int
	n           int
	lease       time.Duration
	kill        bool
	pauses      bool
	disturb     func(*office, event) // in place of office.disturb
	dispatcher  string               // set in a dispatcher's process
	table       string               // set in a dispatcher's process: prefix of the tables
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
	case s.dispatcher != "":
		err = dispatch(ctx, s)
	default:
		err = demonstrate(ctx, s, out, errs)
	}
	if err != nil {
		fmt.Fprintln(errs, "deployments:", err)
		return 1
	}
	return 0
}

func parse(args []string, errs io.Writer) (s settings, err error) {
	fs := flag.NewFlagSet("deployments", flag.ContinueOnError)
	fs.SetOutput(errs)
	fs.Usage = func() {
		fmt.Fprintln(errs, "Dispatcher processes share queued deployments; nothing is lost when one is killed.\n\nFlags:")
		fs.PrintDefaults()
	}
	fs.IntVar(&s.dispatchers, "dispatchers", 3, "number of dispatcher processes")
	fs.IntVar(&s.n, "n", 64, "deployments of the plan that are made")
	fs.DurationVar(&s.lease, "lease", time.Second, "lease of a running deployment, at least 1s")
	fs.BoolVar(&s.kill, "kill", true, "kill one dispatcher in the middle of a deployment")
	fs.BoolVar(&s.pauses, "pause", crew.CanPause, "pause one dispatcher past its lease, and refuse its late write")
	fs.StringVar(&s.dispatcher, "dispatcher", "", "run as a dispatcher of this name (the program starts itself so)")
	fs.StringVar(&s.table, "table", "", "prefix of the tables, for dispatchers")
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	switch {
	case fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case s.dispatchers < 1 || s.dispatchers > 50:
		err = fmt.Errorf("-dispatchers %d: use 1 to 50", s.dispatchers)
	case s.n < 1:
		err = fmt.Errorf("-n %d: use at least 1", s.n)
	case s.lease < time.Second || s.lease > time.Minute:
		err = fmt.Errorf("-lease %v: use 1s to 1m", s.lease)
	case s.pauses && !crew.CanPause:
		err = errors.New("-pause: this system cannot pause processes")
	case s.dispatchers < 2:
		s.kill, s.pauses = false, false // somebody must be left to go on
	}
	if err != nil {
		fmt.Fprintln(errs, "deployments:", err)
	}
	return s, err
}
