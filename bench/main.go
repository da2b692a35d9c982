// Bench measures the modes of Dynahold beside other ways to change items of
// DynamoDB. The README says how to run it and what the columns mean.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

func main() {
	load.Main(func(h *load.Harness) int {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		err := bench(ctx, h, os.Args[1:])
		switch {
		case err == nil, errors.Is(err, flag.ErrHelp):
			return 0
		case errors.Is(err, errUsage):
			return 2
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	})
}

// settings are what the command line says.
type settings struct {
	scenarios, contenders *regexp.Regexp
	real                  bool
	short                 bool
	span                  time.Duration
	seed                  uint64
	out                   string
}

var (
	errUsage = errors.New("wrong arguments") // already printed
	errWrong = errors.New("changes were lost, or made twice")
)

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	s.scenarios, s.contenders = regexp.MustCompile(""), regexp.MustCompile("")
	flags.Func("scenario", "run the scenarios that match this `regexp`", compile(&s.scenarios))
	flags.Func("contender", "run the contenders that match this `regexp`", compile(&s.contenders))
	flags.BoolVar(&s.real, "real", false, "measure in real time instead of virtual time")
	flags.BoolVar(&s.short, "short", false, "try everything in under a minute, with few callers; the figures mean little")
	flags.DurationVar(&s.span, "span", 0, "measure for this long instead of the scenario's own time")
	flags.Uint64Var(&s.seed, "seed", 1, "seed of latencies and of the choice of items")
	flags.StringVar(&s.out, "out", "", "write results.json, results.md and results.svg to this `folder`")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, errUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q\n", flags.Arg(0))
		flags.Usage()
		return s, errUsage
	}
	return s, nil
}

func compile(into **regexp.Regexp) func(string) error {
	return func(pattern string) (err error) {
		*into, err = regexp.Compile(pattern)
		return err
	}
}

func bench(ctx context.Context, h *load.Harness, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	results, err := measure(ctx, h, s, os.Stderr)
	if len(results) == 0 {
		return err
	}
	// What was measured is shown even if the rest could not be.
	fmt.Println(tabulate(results).Render())
	if s.out != "" {
		err = errors.Join(err, write(s.out, report{Virtual: !s.real, Seed: s.seed, Results: results}))
	}
	return errors.Join(err, verdict(results))
}

// verdict is an error if anything was lost.
func verdict(results []result) (err error) {
	for _, r := range results {
		if r.Lost != 0 || r.Extra != 0 {
			err = errors.Join(err, fmt.Errorf("%w: %s, %s: %d lost, %d extra", errWrong, r.Scenario, r.Contender, r.Lost, r.Extra))
		}
	}
	return err
}
