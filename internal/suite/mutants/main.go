package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
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
	name  *regexp.Regexp
	share share
	list  bool
}

// share is the nth of so many shares of the mutants, by turns.
type share struct{ nth, of int }

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	name := flags.String("run", "", "only mutants whose name, file or tier matches this `expression`")
	part := flags.String("share", "1/1", "only this share of them, such as `2/8`")
	flags.BoolVar(&o.list, "list", false, "show them, and run nothing")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("what is %q? See -help", flags.Arg(0))
	}
	if o.name, err = regexp.Compile(*name); err != nil {
		return o, err
	}
	o.share, err = parseShare(*part)
	return o, err
}

func parseShare(text string) (s share, err error) {
	nth, of, _ := strings.Cut(text, "/")
	s.nth, err = strconv.Atoi(nth)
	if err == nil {
		s.of, err = strconv.Atoi(of)
	}
	if err != nil || s.nth < 1 || s.nth > s.of {
		return s, fmt.Errorf("%q is not a share such as 2/8", text)
	}
	return s, nil
}

// chosen are the mutants that the command line asks for.
func (o options) chosen(all []mutant) (some []mutant) {
	nth := 0
	for _, m := range all {
		if !o.name.MatchString(m.name) && !o.name.MatchString(m.file) && !o.name.MatchString(string(m.by.tier)) {
			continue
		}
		if nth++; (nth-1)%o.share.of == o.share.nth-1 {
			some = append(some, m)
		}
	}
	return some
}

func run(ctx context.Context, out io.Writer, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	some := o.chosen(mutants())
	if len(some) == 0 {
		return errors.New("no mutant is chosen")
	}
	if o.list {
		for _, m := range some {
			fmt.Fprintf(out, "%-7s %s\n        %s: go %s\n", m.by.tier, m.name, m.file, strings.Join(m.by.command(""), " "))
		}
		return nil
	}
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	return b.runAll(ctx, out, some)
}

// runAll runs mutants one after the other, and writes the table.
func (b *bench) runAll(ctx context.Context, out io.Writer, some []mutant) error {
	began := time.Now()
	bad := 0
	fmt.Fprintf(out, "%-9s %-7s %7s  %s\n", "verdict", "tier", "seconds", "mutant, and the test that finds it")
	for _, m := range some {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		began := time.Now()
		v := b.judge(ctx, m)
		fmt.Fprintf(out, "%-9s %-7s %7.1f  %s: %s\n", v.word, m.by.tier, time.Since(began).Seconds(), m.name, v.text)
		if v.word != found {
			bad++
			fmt.Fprintf(out, "          %s: go %s\n", m.file, strings.Join(m.by.command(""), " "))
		}
	}
	fmt.Fprintf(out, "%d mutants, %d found, in %.0f s\n", len(some), len(some)-bad, time.Since(began).Seconds())
	if bad > 0 {
		return fmt.Errorf("%d of %d mutants were not found as they should be", bad, len(some))
	}
	return nil
}
