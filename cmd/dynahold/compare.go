package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/compare"
	"github.com/dynahold/dynahold/internal/load"
)

type compareCommand struct {
	Processes int           `default:"4" group:"workload" help:"Processes that change the items, each with a client of its own."`
	Workers   int           `default:"8" group:"workload" help:"Workers in each process; each makes one change after the other."`
	Items     int           `default:"1" group:"workload" help:"Items that the changes spread over; 1 is a single hot item."`
	Zipf      float64       `default:"0" placeholder:"NUMBER" group:"workload" help:"Skew of the choice of an item, above 1: the larger, the hotter the first ones. 0: all alike (default: ${default})."`
	Size      size          `default:"1KB" group:"workload" help:"Size of an item, like 1KB or 100KB."`
	Work      time.Duration `default:"0s" placeholder:"DURATION" group:"workload" help:"Time that a change takes inside, between read and write (default: ${default})."`
	Pause     time.Duration `default:"0s" placeholder:"DURATION" group:"workload" help:"Pause of a worker between two changes (default: ${default})."`
	Latency   time.Duration `default:"4ms" group:"workload" help:"Latency of a request to DynamoDB, median."`
	P99       time.Duration `name:"p99" default:"0s" placeholder:"DURATION" group:"workload" help:"Latency of a request, 99th percentile. Default: two worlds, an even one of 2.5 times the median and an uneven one of 12.5 times. --p99, --pareto or --stall: only the one they describe."`
	Pareto    bool          `group:"workload" help:"Latency is a Pareto distribution with these percentiles, not log-normal: its longest ones are longer."`
	Stall     time.Duration `default:"0s" placeholder:"DURATION" group:"workload" help:"One request in a thousand takes so much longer (default: ${default})."`

	Span      time.Duration `default:"2s" group:"measuring" help:"How long each mode is measured in each round; longer where that is too short to judge it."`
	Rounds    int           `default:"3" group:"measuring" help:"Rounds; how far they are apart tells what is noise."`
	TimeLimit time.Duration `default:"10m" group:"measuring" help:"How long all may take in real time. Then complete rounds count."`
	Seed      uint64        `default:"1" group:"measuring" help:"Seed of latencies and choices."`
	Real      bool          `group:"measuring" help:"Measure in real time. Default is virtual time, in which waiting costs none and a busy machine changes nothing."`
	All       bool          `group:"measuring" help:"Measure also the modes that the flags below or the library's own rules leave out."`

	SideEffects bool    `group:"judging" help:"A change has effects outside the item and should not run twice."`
	EveryState  bool    `group:"judging" help:"Readers of the table's stream must see the item after every change: no combining."`
	PriceWrite  float64 `default:"${price_write}" placeholder:"USD" group:"judging" help:"Price of a million write request units (default: ${default}, us-east-1)."`
	PriceRead   float64 `default:"${price_read}" placeholder:"USD" group:"judging" help:"Price of a million read request units (default: ${default}, us-east-1)."`

	Output string  `short:"o" enum:"table,json" default:"table" group:"output" help:"What to print: table or json."`
	HTML   *string `name:"html" placeholder:"FILE" complete:"file" group:"output" help:"Also write a report with charts, one file that stands by itself."`
	Quiet  bool    `short:"q" group:"output" help:"Show no progress."`
}

// Help shows what the command is for, and how it is called.
func (compareCommand) Help() string {
	return `Runs the strategies of the library on the numbers of your workload, against the embedded engine with the latency of DynamoDB added, and checks that no change was lost. No account is needed and nothing is billed.

It measures in two worlds: in one latency is even (p99 is 2.5 times the median), in the other uneven (12.5 times: 4ms and 50ms). It recommends one mode for both, and says whether each world alone has the same advice. Whoever gives --p99, --pareto or --stall gets only the world of these.

A mode is recommended only if it is fair (Jain's index of 0.8) in each round, not just on average: the advice is not one of the seed. Who is 8 times behind the best after one run, in rate, cost and p99 together, is not measured again.

The default takes one to two minutes on 2 cores; more callers take longer. At the end of --time-limit the rounds count that are complete.

Examples:

  A stock counter that 64 workers in 8 processes want at once:

    dynahold compare --processes 8 --workers 8

  Documents of 100 KB, some hotter than others, a report with charts:

    dynahold compare --items 500 --zipf 1.1 --size 100KB --pause 50ms --html report.html

  Only one world: requests are slow now and then, and stall once in a while:

    dynahold compare --p99 50ms --stall 1s

  Each change calls a payment service for 30 ms; the advice for a script:

    dynahold compare --work 30ms --side-effects -o json | jq -r .verdict.mode

Exit codes: 0 ok; 1 something failed, a mode lost a change, calls of the recommended mode failed, or there is no recommendation; 2 usage.

` + compare.Fields
}

// The ends of a comparison in which not all went well; what, is in the output.
var (
	errWrong   = errors.New("changes were lost or made twice: see above, and please report it")
	errFailing = errors.New("calls failed in the recommended mode too: see above")
	errNothing = errors.New("no mode can be recommended")
)

// Run implements the command.
func (cmd *compareCommand) Run(ctx context.Context, c *console, h compare.Runner) error {
	endpoint, err := localEndpoint()
	if err != nil {
		return err
	}
	report, err := openReport(cmd.HTML)
	if err != nil {
		return err
	}
	defer report.discard()

	p := newProgress(c, cmd.Quiet, cmd.Rounds)
	r, err := compare.MeasureWorlds(ctx, h, load.Modes(), cmd.worlds(endpoint), versionOfTool(), p)
	p.stop()
	if err != nil {
		return withoutEngine(err)
	}
	// The report first: whoever reads the output may go away.
	if err := report.write(r.HTML); err != nil {
		return err
	}
	if cmd.Output == "json" {
		err = r.JSON(c.out)
	} else {
		err = r.Table(c.out, c.width, c.outIsTerminal)
	}
	if err != nil {
		return err
	}
	if report.path != "" && !cmd.Quiet {
		fmt.Fprintln(c.err, "report:", report.path)
	}
	switch {
	case r.Wrong():
		return errWrong
	case r.Failing():
		return errFailing
	case r.Verdict.Mode == "":
		return errNothing
	}
	return nil
}

// settings of the flags, complete.
func (cmd *compareCommand) settings() compare.Settings {
	return compare.Settings{
		Workload: load.Workload{
			Processes: cmd.Processes, Workers: cmd.Workers, Items: cmd.Items, Zipf: cmd.Zipf, Size: int(cmd.Size),
			Work: cmd.Work, Pause: cmd.Pause, Span: cmd.Span,
			Latency: load.Latency{Median: cmd.Latency, P99: cmd.tail(), Pareto: cmd.Pareto, Stall: cmd.Stall}, Seed: cmd.Seed,
		},
		Rounds: cmd.Rounds, TimeLimit: cmd.TimeLimit, Virtual: !cmd.Real, All: cmd.All,
		Prices:      compare.Prices{Write: cmd.PriceWrite, Read: cmd.PriceRead},
		SideEffects: cmd.SideEffects, EveryState: cmd.EveryState,
	}
}

// worlds to measure in: the one that the flags describe, else both.
func (cmd *compareCommand) worlds(endpoint string) []compare.Settings {
	s := cmd.settings()
	s.Endpoint = endpoint
	if cmd.P99 != 0 || cmd.Pareto || cmd.Stall != 0 {
		return []compare.Settings{s}
	}
	return s.InBothWorlds()
}

// tail of the latency; where only the median is given, the usual one.
func (cmd *compareCommand) tail() time.Duration {
	if cmd.P99 == 0 {
		return cmd.Latency * 5 / 2
	}
	return cmd.P99
}
