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
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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

func main() { crew.Main(run) }

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	var s settings
	p := crew.Program{
		Name:  "deployments",
		About: "Dispatcher processes share queued deployments; nothing is lost when one is killed.",
		Flags: s.flags, Check: s.check,
	}
	return p.Run(args, errs, func() error {
		if s.dispatcher != "" {
			return crew.Join(ctx, func(ctx context.Context, client *dynamodb.Client) error { return dispatch(ctx, s, client) })
		}
		return demonstrate(ctx, s, out, errs)
	})
}

func (s *settings) flags(fs *flag.FlagSet) {
	fs.IntVar(&s.dispatchers, "dispatchers", 3, "number of dispatcher processes")
	fs.IntVar(&s.n, "n", 64, "deployments of the plan that are made")
	fs.DurationVar(&s.lease, "lease", time.Second, "lease of a running deployment, at least 1s")
	fs.BoolVar(&s.kill, "kill", true, "kill one dispatcher in the middle of a deployment")
	fs.BoolVar(&s.pauses, "pause", crew.CanPause, "pause one dispatcher past its lease, and refuse its late write")
	fs.StringVar(&s.dispatcher, "dispatcher", "", "run as a dispatcher of this name (the program starts itself so)")
	fs.StringVar(&s.table, "table", "", "prefix of the tables, for dispatchers")
}

func (s *settings) check() error {
	switch {
	case s.dispatchers < 1 || s.dispatchers > 50:
		return fmt.Errorf("-dispatchers %d: use 1 to 50", s.dispatchers)
	case s.n < 1:
		return fmt.Errorf("-n %d: use at least 1", s.n)
	case s.lease < time.Second || s.lease > time.Minute:
		return fmt.Errorf("-lease %v: use 1s to 1m", s.lease)
	case s.pauses && !crew.CanPause:
		return errors.New("-pause: this system cannot pause processes")
	case s.dispatchers < 2:
		s.kill, s.pauses = false, false // somebody must be left to go on
	}
	return nil
}
