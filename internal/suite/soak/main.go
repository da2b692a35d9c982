package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

// options are what the command line asks for.
type options struct {
	length time.Duration
	seed   uint64
	tiers  []tier
	beside int
	out    string
	sum    string
}

func parse(out io.Writer, args []string) (o options, err error) {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.DurationVar(&o.length, "for", 10*time.Minute, "how long to begin new runs")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of the first run; 0: the time")
	names := flags.String("tiers", "", "tiers, with commas between them; default: all, which are "+strings.Join(namesOf(tiers), ", "))
	flags.IntVar(&o.beside, "beside", 2, "how many tiers run side by side")
	flags.StringVar(&o.out, "out", "", "file of results, to which is added; default: docs/results/soak-<day>.jsonl")
	flags.StringVar(&o.sum, "sum", "", "write the sum of all results of docs/results into this file, and run nothing")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	if o.length <= 0 || o.beside < 1 {
		return o, errors.New("-for and -beside must be above 0")
	}
	o.tiers = tiers
	if *names != "" {
		o.tiers = nil
		for _, name := range strings.Split(*names, ",") {
			i := slices.IndexFunc(tiers, func(t tier) bool { return t.name == name })
			if i < 0 {
				return o, fmt.Errorf("there is no tier %q: %s", name, strings.Join(namesOf(tiers), ", "))
			}
			o.tiers = append(o.tiers, tiers[i])
		}
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().Unix()) //nolint:gosec // after 1970
	}
	return o, nil
}

func namesOf(all []tier) (names []string) {
	for _, t := range all {
		names = append(names, t.name)
	}
	return names
}

func run(ctx context.Context, out io.Writer, args []string) error {
	o, err := parse(out, args)
	if err != nil {
		return err
	}
	root, err := rootFolder()
	if err != nil {
		return err
	}
	if o.sum != "" {
		return writeSum(root, o.sum)
	}
	programs, err := build(ctx, out, root, o.tiers)
	if err != nil {
		return err
	}
	defer programs.remove()
	return shake(ctx, out, o, programs)
}

func writeSum(root, name string) error {
	files, err := resultFiles(root + "/docs/results")
	if err != nil {
		return err
	}
	all, err := sum(files)
	if err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(table(file, all), file.Close())
}
