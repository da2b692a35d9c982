package compare

import (
	"encoding/json"
	"io"
	"math"
	"time"
)

// The document's names are stable, and carry their units. New ones may be
// added.
type document struct {
	Command        string         `json:"command"`
	Workload       workloadJSON   `json:"workload"`
	Prices         pricesJSON     `json:"prices"`
	Modes          []modeJSON     `json:"modes"`
	Recommendation recommendation `json:"recommendation"`
}

type workloadJSON struct {
	Processes         int     `json:"processes"`
	WorkersPerProcess int     `json:"workers_per_process"`
	Items             int     `json:"items"`
	ZipfExponent      float64 `json:"zipf_exponent"`
	ItemBytes         int     `json:"item_bytes"`
	WorkMS            float64 `json:"work_ms"`
	PauseMS           float64 `json:"pause_ms"`
	LatencyMedianMS   float64 `json:"latency_median_ms"`
	LatencyP99MS      float64 `json:"latency_p99_ms"`
	SpanMS            float64 `json:"span_ms"`
	Rounds            int     `json:"rounds"`
	Seed              uint64  `json:"seed"`
	VirtualTime       bool    `json:"virtual_time"`
	SideEffects       bool    `json:"side_effects"`
	EveryState        bool    `json:"every_state"`
}

type pricesJSON struct {
	Write  float64 `json:"write_usd_per_million_units"`
	Read   float64 `json:"read_usd_per_million_units"`
	Source string  `json:"source"`
}

type modeJSON struct {
	Mode         string   `json:"mode"`
	Strategy     string   `json:"strategy"`
	Options      []string `json:"options"`
	Rank         *int     `json:"rank"` // null: excluded
	Excluded     string   `json:"excluded_because,omitempty"`
	Rate         float64  `json:"changes_per_second"`
	RateSpread   float64  `json:"changes_per_second_spread_ratio"`
	PartitionMax *float64 `json:"partition_limit_changes_per_second"` // null: none
	Requests     float64  `json:"requests_per_change"`
	WriteUnits   float64  `json:"write_units_per_change"`
	ReadUnits    float64  `json:"read_units_per_change"`
	Cost         float64  `json:"cost_usd_per_million_changes"`
	CostSpread   float64  `json:"cost_spread_ratio"`
	P50          float64  `json:"p50_ms"`
	P99          float64  `json:"p99_ms"`
	P99Spread    float64  `json:"p99_spread_ratio"`
	Jain         float64  `json:"fairness_jain"`
	Changes      int      `json:"changes"`
	Failed       int      `json:"failed_calls"`
	Lost         int      `json:"lost_changes"`
	Extra        int      `json:"extra_changes"`
	Error        string   `json:"first_error,omitempty"`
}

type recommendation struct {
	Mode         *string  `json:"mode"` // null: none is left
	Go           string   `json:"go"`
	Reasons      []string `json:"reasons"`
	WithinNoise  []string `json:"within_noise"`
	RunnerUp     *string  `json:"runner_up"` // null: no other mode is left
	RunnerUpWhen []string `json:"runner_up_when"`
	Notes        []string `json:"notes"`
}

// JSON writes one document.
func (r Report) JSON(w io.Writer) error {
	s := r.Settings
	l := s.Workload
	d := document{
		Command: s.Command(),
		Workload: workloadJSON{
			Processes: l.Processes, WorkersPerProcess: l.Workers, Items: l.Items, ZipfExponent: l.Zipf, ItemBytes: l.Size,
			WorkMS: ms(l.Work), PauseMS: ms(l.Pause), LatencyMedianMS: ms(l.Latency.Median), LatencyP99MS: ms(l.Latency.P99),
			SpanMS: ms(l.Span), Rounds: s.Rounds, Seed: l.Seed, VirtualTime: s.Virtual, SideEffects: s.SideEffects, EveryState: s.EveryState,
		},
		Prices: pricesJSON{Write: s.Prices.Write, Read: s.Prices.Read, Source: s.Prices.source()},
		Recommendation: recommendation{
			Mode: orNull(r.Advice.Choice), Go: r.Advice.Code, Reasons: orEmpty(r.Advice.Reasons), WithinNoise: orEmpty(r.Advice.Even),
			RunnerUp: orNull(r.Advice.RunnerUp), RunnerUpWhen: orEmpty(r.Advice.When), Notes: orEmpty(r.Advice.Notes),
		},
	}
	for _, m := range r.Modes {
		d.Modes = append(d.Modes, r.mode(m))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(d)
}

func (r Report) mode(m Mode) modeJSON {
	j := modeJSON{
		Mode: m.Name, Strategy: m.strategy(), Options: orEmpty(m.options()), Excluded: r.Advice.Out[m.Name],
		Rate: m.Rate, RateSpread: m.RateSpread, Requests: m.Requests, WriteUnits: m.WriteUnits, ReadUnits: m.ReadUnits,
		Cost: m.Cost, CostSpread: m.CostSpread, P50: ms(m.P50), P99: ms(m.P99), P99Spread: m.P99Spread, Jain: m.Jain,
		Changes: m.Changes, Failed: m.Failed, Lost: m.Lost, Extra: m.Extra, Error: m.Error,
	}
	if n := r.rank(m.Name); n > 0 {
		j.Rank = &n
	}
	if !math.IsInf(m.PartitionMax, 0) {
		j.PartitionMax = &m.PartitionMax
	}
	return j
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// orEmpty keeps null out of the document: readers loop over lists.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
