package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/compare"
	"github.com/dynahold/dynahold/repo"
)

// grammar is the command line.
type grammar struct {
	Compare compareCommand `cmd:"" help:"Measure which strategy suits a workload: a table, a recommendation with its reason, a report."`
	Item    itemCommands   `cmd:"" help:"What an item's lock attributes say, in words."`
	Locks   lockCommands   `cmd:"" help:"Locks of a table: who holds them, and breaking them."`
	Jobs    jobCommands    `cmd:"" help:"Resources, jobs, dead letters and schedules of package jobs."`
	Queue   queueCommands  `cmd:"" help:"Queues of package ticket: who stands there since when, and taking somebody out."`
	Permits permitCommands `cmd:"" help:"Permits of package semaphore: who holds them, and breaking them."`

	Resources resourceCommands `cmd:"" help:"Resources of packages semaphore and jobs: pausing, limiting, forgetting and auditing them."`

	Unique uniqueCommands `cmd:"" help:"Claims of unique attributes: listing, checking and repairing them."`

	Commands commandCommands `cmd:"" help:"Commands of package delegate: who leads an item, what waits for it, and taking out what nobody carries out."`

	Verify verifyCommand `cmd:"" help:"Say whether the protocol allows what became of a table's items, from its stream."`

	Table   tableCommands  `cmd:"" help:"What a table is, and whether its attributes collide with the library's."`
	Version versionCommand `cmd:"" help:"Print the version."`

	Completion completionCommand `cmd:"" help:"Print the script by which a shell completes command lines of this tool."`
}

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1 // something failed or was lost
	exitUsage   = 2 // the command line makes no sense; nothing was done
	exitNothing = 3 // what was named is not there; nothing was done
	exitMoved   = 4 // somebody else was quicker: it is not as it was seen; nothing was done
	exitFound   = 5 // something was found that has to be mended
)

// outcome is an end with an exit code of its own.
type outcome struct {
	code int
	err  error
}

func (o outcome) Error() string { return o.err.Error() }
func (o outcome) Unwrap() error { return o.err }

// usage is a fault of whoever called that the parser cannot see.
func usage(format string, args ...any) error { return outcome{exitUsage, fmt.Errorf(format, args...)} }

// run is the program: what main does, on any console.
func run(ctx context.Context, args []string, c *console, h compare.Runner) int {
	var cli grammar
	helped := false
	parser, err := kong.New(&cli,
		kong.Name("dynahold"),
		kong.Description("Safe concurrent changes to DynamoDB items: the tool of the Go library Dynahold."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: c.width}),
		kong.Writers(c.out, c.err),
		kong.WithHyphenPrefixedParameters(true), // so that --workers -1 is told what is wrong with it
		kong.Exit(func(int) { helped = true }),  // main must return
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.BindTo(h, (*compare.Runner)(nil)),
		kong.Bind(c),
		kong.Vars{
			"price_write": fmt.Sprint(compare.OnDemand.Write),
			"price_read":  fmt.Sprint(compare.OnDemand.Read),
		},
		kong.ExplicitGroups([]kong.Group{
			{Key: "workload", Title: "Workload"},
			{Key: "measuring", Title: "Measuring"},
			{Key: "judging", Title: "Judging"},
			{Key: "aws", Title: "Which DynamoDB"},
			{Key: "output", Title: "Output"},
		}),
	)
	if err != nil {
		return c.fail(err, exitFailed) // the grammar itself
	}
	if len(args) > 0 && args[0] == completeWord {
		return c.complete(parser.Model, args[1:])
	}
	call, err := parser.Parse(args)
	if helped {
		return exitOK
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitFailed // whoever wanted the help has seen enough
	}
	if err == nil {
		err = valueless(call)
	}
	if err != nil {
		return c.fail(fmt.Errorf("%w\n%s", err, hint(err)), exitUsage)
	}
	err = call.Run()
	end := outcome{code: exitFailed}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &end), errors.Is(err, repo.ErrOutcomeUnknown):
		// It stands, whoever has interrupted what came after it.
	case ctx.Err() != nil:
		err = errors.New("interrupted") // whatever went wrong then is a consequence
	case errors.Is(err, repo.ErrKey), errors.Is(err, repo.ErrConfig):
		end.code = exitUsage
	case errors.Is(err, repo.ErrNoTable), errors.Is(err, repo.ErrNotFound):
		end.code = exitNothing
	}
	return c.fail(err, end.code)
}

// valueless refuses a flag with an empty value, such as a script's empty variable: it would
// count as one that was not given, and all be meant where some were to be.
func valueless(call *kong.Context) error {
	for _, p := range call.Path {
		if p.Flag != nil && call.FlagValue(p.Flag) == "" {
			return fmt.Errorf("--%s has no value: give one, or leave it away", p.Flag.Name)
		}
	}
	return nil
}

// hint names the help that would have told.
func hint(err error) string {
	var parse *kong.ParseError
	command := ""
	if errors.As(err, &parse) && parse.Context.Selected() != nil {
		command = strings.TrimPrefix(parse.Context.Selected().FullPath(), "dynahold ") + " "
	}
	told := "Run \"dynahold " + command + "--help\" for help."
	if strings.Contains(err.Error(), "unknown flag") {
		told = "A key or a name that begins with a hyphen stands after \"--\", behind all flags. " + told
	}
	return told
}
