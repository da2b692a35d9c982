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
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// settings of a run; candidates get them by flags.
type settings struct {
	candidates int
	lease      time.Duration
	disturb    func(*drama, event) // in place of drama.disturb
	candidate  string              // set in a candidate's process
	table      string              // set in a candidate's process: prefix of the tables
}

func main() { crew.Main(run) }

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	var s settings
	p := crew.Program{
		Name:  "leader",
		About: "Processes elect a leader; late writes of old leaders are refused.",
		Flags: s.flags, Check: s.check,
	}
	return p.Run(args, errs, func() error {
		if s.candidate != "" {
			return crew.Join(ctx, func(ctx context.Context, client *dynamodb.Client) error { return stand(ctx, s, client) })
		}
		return demonstrate(ctx, s, out, errs)
	})
}

func (s *settings) flags(fs *flag.FlagSet) {
	fs.IntVar(&s.candidates, "candidates", 3, "number of candidate processes")
	fs.DurationVar(&s.lease, "lease", time.Second, "lease of the leader's lock, at least 1s")
	fs.StringVar(&s.candidate, "candidate", "", "run as a candidate of this name (the program starts itself so)")
	fs.StringVar(&s.table, "table", "", "prefix of the tables, for candidates")
}

func (s *settings) check() error {
	switch {
	case s.candidates < 3 || s.candidates > 50:
		return fmt.Errorf("-candidates %d: use 3 to 50: one is paused, one killed", s.candidates)
	case s.lease < time.Second || s.lease > time.Minute:
		return fmt.Errorf("-lease %v: use 1s to 1m", s.lease)
	}
	return nil
}
