package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/compare"
	"github.com/dynahold/dynahold/localdb"
)

// What compare can do. The bounds keep a slip of the keyboard from filling the
// memory or running for days.
const (
	mostProcesses = 250       // each asks for itself, so the requests grow with the square
	mostWorkers   = 1000      // in all processes
	mostItems     = 100_000   // each is written in every round of every mode
	mostBytes     = 1 << 30   // of all items
	mostSize      = 390 << 10 // of an item
	leastSpan     = time.Second / 10
	mostTime      = time.Hour
	mostLatency   = time.Minute
	leastLimit    = time.Second
	mostLimit     = 24 * time.Hour
	mostRounds    = 100
	mostPrice     = 1_000_000 // of a million units
)

// Validate is called by the parser. The first thing that is wrong is enough.
func (cmd *compareCommand) Validate() error {
	for _, n := range []struct {
		flag              string
		value, least, top int
	}{
		{"--processes", cmd.Processes, 1, mostProcesses},
		{"--workers", cmd.Workers, 1, mostWorkers},
		{"--items", cmd.Items, 1, mostItems},
		{"--rounds", cmd.Rounds, 1, mostRounds},
	} {
		if n.value < n.least || n.value > n.top {
			return fmt.Errorf("%s must be from %d to %d, not %d", n.flag, n.least, n.top, n.value)
		}
	}
	for _, d := range []struct {
		flag              string
		value, least, top time.Duration
	}{
		{"--work", cmd.Work, 0, mostTime},
		{"--pause", cmd.Pause, 0, mostTime},
		{"--latency", cmd.Latency, time.Microsecond, mostLatency},
		{"--p99", cmd.P99, 0, mostTime},
		{"--stall", cmd.Stall, 0, mostTime},
		{"--span", cmd.Span, leastSpan, mostTime},
		{"--time-limit", cmd.TimeLimit, leastLimit, mostLimit},
	} {
		if d.value < d.least || d.value > d.top {
			return fmt.Errorf("%s must be from %s to %s, not %s", d.flag, compare.FormatTime(d.least), compare.FormatTime(d.top), d.value)
		}
	}
	return errors.Join(cmd.validateItems(), cmd.validateRest())
}

func (cmd *compareCommand) validateItems() error {
	switch {
	case cmd.Size > mostSize:
		return fmt.Errorf("--size can be 390KB, not %s: DynamoDB takes 400KB, and version, lock and the rest need some of it", compare.FormatSize(int(cmd.Size)))
	case cmd.Size < 1:
		return errors.New("--size must be at least 1B")
	case int(cmd.Size)*cmd.Items > mostBytes:
		return fmt.Errorf("%d items of %s are more than 1 GB, which is too much for the embedded engine: fewer --items tell as much", cmd.Items, compare.FormatSize(int(cmd.Size)))
	case cmd.Zipf != 0 && cmd.Items == 1:
		return errors.New("--zipf needs more --items than 1 to choose from")
	case cmd.Zipf != 0 && !(cmd.Zipf > 1 && cmd.Zipf <= 100):
		return fmt.Errorf("--zipf must be above 1 (1.01 is little skew, 2 is much), or 0 for none, not %v", cmd.Zipf)
	}
	return nil
}

func (cmd *compareCommand) validateRest() error {
	switch {
	case cmd.Processes*cmd.Workers > mostWorkers:
		return fmt.Errorf("--processes times --workers is %d; %d is the most: more callers send more requests than anybody wants to wait for, and tell no more", cmd.Processes*cmd.Workers, mostWorkers)
	case cmd.P99 != 0 && cmd.P99 < cmd.Latency:
		return fmt.Errorf("--p99 (%s) is below the median --latency (%s)", compare.FormatTime(cmd.P99), compare.FormatTime(cmd.Latency))
	}
	if err := checkFile("--html", cmd.HTML); err != nil {
		return err
	}
	for flag, price := range map[string]float64{"--price-write": cmd.PriceWrite, "--price-read": cmd.PriceRead} {
		if !(price >= 0 && price <= mostPrice) { // NaN is neither
			return fmt.Errorf("%s must be a price in USD, at most %v, not %v", flag, mostPrice, price)
		}
	}
	return nil
}

// localEndpoint is the URL of the server that the environment names; empty where
// an embedded engine is started. It refuses any but those on this machine: a
// comparison sends tens of thousands of requests, which Amazon DynamoDB would
// bill and delay once more.
func localEndpoint() (string, error) {
	endpoint, local, err := localdb.Config{}.Given()
	switch {
	case err != nil:
		return "", usage("%w", err)
	case endpoint != "" && !local:
		return "", usage("compare measures on this machine, but the environment names %s: unset AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL", endpoint)
	}
	return endpoint, nil
}

// withoutEngine says what to do where there is none to measure on. The text of
// localdb also proposes Amazon DynamoDB, which is not measured here.
func withoutEngine(err error) error {
	if !errors.Is(err, localdb.ErrNoEngine) {
		return err
	}
	reason := err
	var both interface{ Unwrap() []error } // ErrNoEngine and the reason
	for errors.As(reason, &both) {
		all := both.Unwrap()
		if len(all) == 2 && all[0] == localdb.ErrNoEngine { //nolint:errorlint // the pair itself
			reason = all[1]
			break
		}
		reason = all[0]
	}
	return fmt.Errorf("no engine to measure on: %w. Install npm, by which it is fetched once, or dynoxide on the PATH; or run any DynamoDB-compatible server on this machine and name it in AWS_ENDPOINT_URL_DYNAMODB", reason)
}
