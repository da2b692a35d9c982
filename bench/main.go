// Bench measures the modes of Dynahold beside other ways to change items of
// DynamoDB. The README says how to run it and what the columns mean.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

func main() {
	load.Main(func(h *load.Harness) int {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
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
	worlds                []world
	seeds                 int
	span                  time.Duration
	seed                  uint64
	out                   string
	document              string
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
	flags.BoolVar(&s.short, "short", false, "try everything in small, with few callers whatever the names of the scenarios say: the figures are no results")
	s.worlds = worlds[:1]
	flags.Func("world", "run everything in each world of this `list`, of "+strings.Join(worldNames(), ", ")+" (default "+worlds[0].name+")", func(list string) (err error) {
		s.worlds, err = worldsNamed(list)
		return err
	})
	flags.IntVar(&s.seeds, "seeds", 1, "run everything with so many seeds, and show medians")
	flags.DurationVar(&s.span, "span", 0, "measure for this long instead of the scenario's own time")
	flags.Uint64Var(&s.seed, "seed", 1, "seed of latencies and of the choice of items")
	flags.StringVar(&s.document, "document", "", "measure nothing, but fill the tables of this `file` from the results that it names")
	flags.StringVar(&s.out, "out", "", "write results.json, results.csv and charts to this `folder`")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, errUsage
	}
	spanGiven := false
	flags.Visit(func(f *flag.Flag) { spanGiven = spanGiven || f.Name == "span" })
	wrong := ""
	switch {
	case flags.NArg() > 0:
		wrong = fmt.Sprintf("unexpected argument %q", flags.Arg(0))
	case spanGiven && (s.span < leastSpan || s.span > mostSpan):
		wrong = fmt.Sprintf("-span must be from %v to %v, not %v", leastSpan, mostSpan, s.span)
	case s.seeds < 1 || s.seeds > mostSeeds:
		wrong = fmt.Sprintf("-seeds must be from 1 to %d, not %d", mostSeeds, s.seeds)
	case s.real && slices.ContainsFunc(s.worlds, func(w world) bool { return w.virtual }):
		wrong = "that world is for virtual time: in real time the server has latencies and limits of its own"
	case len(plan(s)) == 0:
		wrong = "nothing matches; the scenarios are\n  " + strings.Join(scenarioNames(), "\n  ") + "\nand the contenders\n  " + strings.Join(contenderNames(), "\n  ")
	}
	if wrong != "" {
		fmt.Fprintln(os.Stderr, wrong)
		return s, errUsage
	}
	if s.out != "" { // before the measuring: minutes later it would be a pity
		if err := writable(s.out); err != nil {
			fmt.Fprintln(os.Stderr, "-out:", err)
			return s, errUsage
		}
	}
	return s, nil
}

// The bounds of -span.
const (
	leastSpan = 100 * time.Millisecond
	mostSpan  = time.Hour
)

const mostSeeds = 100

// where names the worlds.
func (s settings) where() (names []string) {
	for _, w := range s.worlds {
		names = append(names, w.name)
	}
	return names
}

func scenarioNames() (names []string) {
	for _, s := range scenarios(false) {
		names = append(names, s.name)
	}
	return names
}

func contenderNames() (names []string) {
	for _, s := range scenarios(false) {
		for _, c := range s.among() {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// writable makes the folder and a file in it.
func writable(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, ".bench-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
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
	if s.document != "" {
		return fillFile(s.document)
	}
	results, err := measure(ctx, h, s, os.Stderr)
	if len(results) == 0 {
		return err
	}
	// What was measured is shown even if the rest could not be.
	fmt.Println(tabulate(results).Render())
	if s.short {
		fmt.Println(shortWarning)
	}
	if s.out != "" {
		err = errors.Join(err, write(s.out, report{Virtual: !s.real, Short: s.short, Worlds: s.where(), Seed: s.seed, Seeds: s.seeds, Command: command(ctx, args), Results: results}))
	}
	return errors.Join(err, verdict(results))
}

// command is how this run was started, with the commit where git knows it.
func command(ctx context.Context, args []string) string {
	var quoted []string
	for _, arg := range args {
		if strings.ContainsAny(arg, " |()[]$^*?") {
			arg = "'" + arg + "'"
		}
		quoted = append(quoted, arg)
	}
	line := "cd bench && go run . " + strings.Join(quoted, " ")
	if commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		line += "; commit " + strings.TrimSpace(string(commit))
	}
	return line + "; " + time.Now().Format(time.DateOnly)
}

// verdict is an error if anything was lost.
func verdict(results []result) (err error) {
	for _, r := range results {
		if r.Lost != 0 || r.Extra != 0 || r.Imbalance != 0 {
			err = errors.Join(err, fmt.Errorf("%w: %s, %s: %d lost, %d extra, the balances add up to %d", errWrong, r.Scenario, r.Contender, r.Lost, r.Extra, r.Imbalance))
		}
	}
	return err
}
