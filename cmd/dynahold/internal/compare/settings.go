package compare

import (
	"fmt"
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
	// TimeLimit is how long everything may take, in real time. What was measured
	// until then counts, if it is one round at least.
	TimeLimit time.Duration
	share     time.Duration // of it, for this world; 0: all
	World     string        // "even" or "uneven"; empty: one that the user has described
	Endpoint  string        // of a given server; empty: the embedded engine
	All       bool          // modes too that the settings rule out

	SideEffects bool // a change has effects outside the item: it should not run twice
	EveryState  bool // readers of the table's stream must see the item after every change
}

// budget ends a round early that needs very many requests: they are what
// takes real time, and the figures do not get better from then on.
const budget = 3000

// workload of a round, to begin with.
func (s Settings) workload() load.Workload {
	w := s.Workload
	w.Budget = budget
	return w
}

// What a round must show of a mode: fewer turns of each process make the
// fairness a matter of chance, fewer changes the 99th percentile.
const (
	enoughTurns   = 20
	enoughChanges = 100
)

// How far a run is lengthened for that.
const (
	mostRequests = 20_000
	mostAtOnce   = 4 // times, before it is looked at again
	someMore     = 1.2
)

// stretch is by how much a run of the workload must be longer to show enough; 1
// where it does, or where no longer run is worth it.
func (s Settings) stretch(w load.Workload, r load.Result) float64 {
	if r.Turns >= enoughTurns && r.Changes >= enoughChanges && r.P99 > 0 {
		return 1
	}
	f := float64(mostAtOnce)
	if r.P99 > 0 && r.Changes > 0 && r.Turns > 0 {
		f = min(f, someMore*max(enoughTurns/r.Turns, enoughChanges/float64(r.Changes)))
	}
	if requests := r.Requests * float64(max(1, r.Changes)); requests > 0 {
		f = min(f, mostRequests/requests)
	}
	return min(f, float64(s.longest())/float64(r.Measured))
}

// longest is what a run is lengthened to at most. Who got nothing in so long a
// time is not waiting for its turn, but starved.
func (s Settings) longest() time.Duration {
	return max(time.Minute, s.Workload.Span, 20*s.circle())
}

// circle is about the time in which every worker makes one change, if all are
// made one after the other.
func (s Settings) circle() time.Duration {
	w := s.Workload
	return w.Pause + time.Duration(w.Processes*w.Workers)*(w.Work+2*w.Latency.Median)
}

// longer is how to measure enough changes of so many modes.
func (s Settings) longer(modes int) string {
	if s.Virtual {
		return "try a longer --time-limit, or fewer processes and workers"
	}
	w := s.Workload
	span := roundUp(s.circle() * time.Duration(max(5, 2*enoughChanges/(w.Processes*w.Workers))))
	limit := roundUp(2 * span * time.Duration(modes*s.Rounds)) // changes under way are finished, too
	return fmt.Sprintf("try --span %s --time-limit %s, or leave out --real: virtual time does not wait", FormatTime(span), FormatTime(limit))
}

// roundUp to what is easy to read.
func roundUp(d time.Duration) time.Duration {
	unit := time.Minute
	if d < time.Minute {
		unit = time.Second
	}
	return (d + unit - 1).Truncate(unit)
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
		"--span", FormatTime(w.Span),
		"--rounds", strconv.Itoa(s.Rounds),
		"--time-limit", FormatTime(s.TimeLimit),
		"--seed", strconv.FormatUint(w.Seed, 10),
		"--price-write", plain(s.Prices.Write),
		"--price-read", plain(s.Prices.Read),
	}
	if s.World == "" { // else both worlds
		args = append(args, "--p99", FormatTime(w.Latency.P99))
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
	if w.Latency.Stall != 0 {
		args = append(args, "--stall", FormatTime(w.Latency.Stall))
	}
	for _, f := range []struct {
		name string
		on   bool
	}{{"--pareto", w.Latency.Pareto}, {"--real", !s.Virtual}, {"--side-effects", s.SideEffects}, {"--every-state", s.EveryState}, {"--all", s.All}} {
		if f.on {
			args = append(args, f.name)
		}
	}
	return strings.Join(args, " ")
}

// limit is the time that there is in this world.
func (s Settings) limit() time.Duration {
	if s.share != 0 {
		return s.share
	}
	return s.TimeLimit
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
