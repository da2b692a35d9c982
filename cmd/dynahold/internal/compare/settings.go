package compare

import (
	"strconv"
	"strings"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

// Settings say what is measured, and by what it is judged.
type Settings struct {
	Workload load.Workload // complete: nothing is left to defaults
	Rounds   int           // every mode works so often; at least 1
	Virtual  bool          // virtual time, in which the processor costs nothing
	Prices   Prices

	SideEffects bool // a change has effects outside the item: it should not run twice
	EveryState  bool // readers of the table's stream must see the item after every change
}

// budget ends a round early that needs very many requests: they are what
// takes real time, and the figures do not get better from then on.
const budget = 3000

// workload of one round. Each round has its own latencies, the same for all
// modes.
func (s Settings) workload(round int) load.Workload {
	w := s.Workload
	w.Seed += uint64(round) //nolint:gosec // not negative
	w.Budget = budget
	return w
}

// Command is the command line that measures this once more. It names what has
// a default too, other than 0, so that it stays right when a default changes.
func (s Settings) Command() string {
	w := s.Workload
	args := []string{
		"dynahold", "compare",
		"--processes", strconv.Itoa(w.Processes),
		"--workers", strconv.Itoa(w.Workers),
		"--items", strconv.Itoa(w.Items),
		"--size", FormatSize(w.Size),
		"--latency", FormatTime(w.Latency.Median),
		"--p99", FormatTime(w.Latency.P99),
		"--span", FormatTime(w.Span),
		"--rounds", strconv.Itoa(s.Rounds),
		"--seed", strconv.FormatUint(w.Seed, 10),
		"--price-write", plain(s.Prices.Write),
		"--price-read", plain(s.Prices.Read),
	}
	if w.Zipf != 0 {
		args = append(args, "--zipf", plain(w.Zipf))
	}
	if w.Work != 0 {
		args = append(args, "--work", FormatTime(w.Work))
	}
	if w.Pause != 0 {
		args = append(args, "--pause", FormatTime(w.Pause))
	}
	for _, f := range []struct {
		name string
		on   bool
	}{{"--real", !s.Virtual}, {"--side-effects", s.SideEffects}, {"--every-state", s.EveryState}} {
		if f.on {
			args = append(args, f.name)
		}
	}
	return strings.Join(args, " ")
}

// FormatSize writes a number of bytes as the flag --size takes it.
func FormatSize(bytes int) string {
	if bytes%1024 == 0 {
		return strconv.Itoa(bytes/1024) + "KB"
	}
	return strconv.Itoa(bytes) + "B"
}

// FormatTime writes a duration without the zeros of its String method: 1m, not
// 1m0s.
func FormatTime(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
