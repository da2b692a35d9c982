// Command leader elects a leader among real processes, and shows what a fencing
// token is for. The leader is paused past its lease; the next one takes over;
// the old one goes on, believes for a moment that it still leads, and writes:
// its write is refused by its token. Then the new leader is killed, and a third
// takes over.
//
//	go run ./examples/leader
//	go run ./examples/leader -candidates 5 -lease 2s
//
// Look at lead in candidate.go for the lock, and at ledger.go for the resource
// that the token protects; disturb.go pauses and kills. The program starts
// itself as candidates (examples/internal/crew). It uses the embedded engine,
// or the endpoint in AWS_ENDPOINT_URL_DYNAMODB.
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

// settings of a run; candidates get them by flags.
type settings struct {
	candidates int
	lease      time.Duration
	disturb    func(*drama, event) // in place of drama.disturb
	candidate  string              // set in a candidate's process
	table      string              // set in a candidate's process: prefix of the tables
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
	case s.candidate != "":
		err = stand(ctx, s)
	default:
		err = demonstrate(ctx, s, out, errs)
	}
	if err != nil {
		fmt.Fprintln(errs, "leader:", err)
		return 1
	}
	return 0
}

func parse(args []string, errs io.Writer) (s settings, err error) {
	fs := flag.NewFlagSet("leader", flag.ContinueOnError)
	fs.SetOutput(errs)
	fs.Usage = func() {
		fmt.Fprintln(errs, "Processes elect a leader; late writes of old leaders are refused.\n\nFlags:")
		fs.PrintDefaults()
	}
	fs.IntVar(&s.candidates, "candidates", 3, "number of candidate processes")
	fs.DurationVar(&s.lease, "lease", time.Second, "lease of the leader's lock, at least 1s")
	fs.StringVar(&s.candidate, "candidate", "", "run as a candidate of this name (the program starts itself so)")
	fs.StringVar(&s.table, "table", "", "prefix of the tables, for candidates")
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	switch {
	case fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case s.candidates < 3 || s.candidates > 50:
		err = fmt.Errorf("-candidates %d: use 3 to 50: one is paused, one killed", s.candidates)
	case s.lease < time.Second || s.lease > time.Minute:
		err = fmt.Errorf("-lease %v: use 1s to 1m", s.lease)
	}
	if err != nil {
		fmt.Fprintln(errs, "leader:", err)
	}
	return s, err
}
