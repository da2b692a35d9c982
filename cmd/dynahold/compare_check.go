package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/compare"
)

// What compare can do. The bounds keep a slip of the keyboard from filling the
// memory or running for days.
const (
	mostWorkers = 10_000    // in all processes
	mostItems   = 100_000   // each is written in every round of every mode
	mostBytes   = 1 << 30   // of all items
	mostSize    = 390 << 10 // of an item
	leastSpan   = time.Second / 10
	mostTime    = time.Hour
	mostRounds  = 100
)

// Validate is called by the parser. The first thing that is wrong is enough.
func (cmd *compareCommand) Validate() error {
	for _, n := range []struct {
		flag              string
		value, least, top int
	}{
		{"--processes", cmd.Processes, 1, mostWorkers},
		{"--workers", cmd.Workers, 1, mostWorkers},
		{"--items", cmd.Items, 1, mostItems},
		{"--rounds", cmd.Rounds, 1, mostRounds},
	} {
		if n.value < n.least || n.value > n.top {
			return fmt.Errorf("%s must be from %d to %d, not %d", n.flag, n.least, n.top, n.value)
		}
	}
	for _, d := range []struct {
		flag         string
		value, least time.Duration
	}{
		{"--work", cmd.Work, 0},
		{"--pause", cmd.Pause, 0},
		{"--latency", cmd.Latency, time.Microsecond},
		{"--p99", cmd.P99, 0},
		{"--span", cmd.Span, leastSpan},
	} {
		if d.value < d.least || d.value > mostTime {
			return fmt.Errorf("%s must be from %s to %s, not %s", d.flag, compare.FormatTime(d.least), compare.FormatTime(mostTime), d.value)
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
	case cmd.Zipf != 0 && !(cmd.Zipf > 1 && cmd.Zipf <= 100):
		return fmt.Errorf("--zipf must be above 1 (1.01 is little skew, 2 is much), or 0 for none, not %v", cmd.Zipf)
	}
	return nil
}

func (cmd *compareCommand) validateRest() error {
	switch {
	case cmd.Processes*cmd.Workers > mostWorkers:
		return fmt.Errorf("--processes times --workers is %d; %d can be measured", cmd.Processes*cmd.Workers, mostWorkers)
	case cmd.P99 != 0 && cmd.P99 < cmd.Latency:
		return fmt.Errorf("--p99 (%s) is below the median --latency (%s)", compare.FormatTime(cmd.P99), compare.FormatTime(cmd.Latency))
	}
	// The parser takes what follows --html for its value, whatever that is.
	if cmd.HTML != nil && (*cmd.HTML == "" || strings.HasPrefix(*cmd.HTML, "-")) {
		return fmt.Errorf("--html needs a file, not %q; a name that begins with a hyphen needs its folder: ./-x.html", *cmd.HTML)
	}
	for flag, price := range map[string]float64{"--price-write": cmd.PriceWrite, "--price-read": cmd.PriceRead} {
		if price < 0 || math.IsNaN(price) || math.IsInf(price, 0) {
			return fmt.Errorf("%s must be a price in USD, not %v", flag, price)
		}
	}
	return nil
}

// onlyLocal refuses to measure anywhere but on this machine: a comparison
// sends tens of thousands of requests, which Amazon DynamoDB would bill and
// delay once more.
func onlyLocal() error {
	if os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") == "true" {
		return nil
	}
	for _, name := range []string{"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"} {
		if endpoint := os.Getenv(name); endpoint != "" {
			if loopback(endpoint) {
				return nil
			}
			return usageError{fmt.Sprintf("compare measures on the embedded engine, but %s names %s: unset it", name, endpoint)}
		}
	}
	return nil
}

func loopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
