package compare

import (
	"cmp"
	"io"
	"math"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
)

// schema is the version of the document. Its names are stable, and carry their
// units; the README of the command describes them. New ones may be added without
// a new version.
const schema = 1

type document struct {
	Schema         int            `json:"schema"`
	Tool           string         `json:"tool_version"`
	Command        string         `json:"command"`
	Engine         engineJSON     `json:"engine"`
	Workload       workloadJSON   `json:"workload"`
	Prices         pricesJSON     `json:"prices"`
	RoundsMeasured int            `json:"rounds_measured"` // less than wanted: the time limit was over
	Modes          []modeJSON     `json:"modes"`
	Skipped        []Skipped      `json:"modes_not_measured"`
	Recommendation recommendation `json:"recommendation"`
	World          string         `json:"world"`             // even, uneven or given
	Verdict        *verdictJSON   `json:"verdict,omitempty"` // of all worlds
	Uneven         *document      `json:"uneven,omitempty"`  // that world too, without a verdict of its own
}

type verdictJSON struct {
	Mode *string `json:"mode"` // null: none is in question in every world
	Go   string  `json:"go"`
	Same bool    `json:"same_in_all_worlds"`
}

type engineJSON struct {
	Kind     string  `json:"kind"`     // embedded or given
	Endpoint *string `json:"endpoint"` // null: embedded
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
	LatencyPareto     bool    `json:"latency_pareto"`   // else log-normal
	LatencyStallMS    float64 `json:"latency_stall_ms"` // of one request in a thousand
	SpanMS            float64 `json:"span_ms"`
	Rounds            int     `json:"rounds"`
	Seed              uint64  `json:"seed"`
	VirtualTime       bool    `json:"virtual_time"`
	SideEffects       bool    `json:"side_effects"`
	EveryState        bool    `json:"every_state"`
	TimeLimitMS       float64 `json:"time_limit_ms"`
}

type pricesJSON struct {
	Write  float64 `json:"write_usd_per_million_units"`
	Read   float64 `json:"read_usd_per_million_units"`
	Source string  `json:"source"`
}

type modeJSON struct {
	Mode          string   `json:"mode"`
	Strategy      string   `json:"strategy"`
	Options       []string `json:"options"`
	Rank          *int     `json:"rank"` // null: excluded
	Excluded      string   `json:"excluded_because,omitempty"`
	Rounds        int      `json:"rounds_measured"`
	MeasuredMS    float64  `json:"measured_ms_per_round"`
	Rate          float64  `json:"changes_per_second"`
	RateSpread    float64  `json:"changes_per_second_spread_ratio"`
	PartitionMax  *float64 `json:"partition_limit_changes_per_second"` // null: none
	EffectiveRate float64  `json:"effective_changes_per_second"`       // the lower of the two, which is ranked
	Requests      *float64 `json:"requests_per_change"`                // these, and all that follow for one change: null without a change
	Reads         *float64 `json:"reads_per_change"`
	Writes        *float64 `json:"writes_per_change"`
	Wasted        *float64 `json:"wasted_writes_per_change"`
	WriteUnits    *float64 `json:"write_units_per_change"`
	ReadUnits     *float64 `json:"read_units_per_change"`
	Cost          *float64 `json:"cost_usd_per_million_changes"`
	CostSpread    float64  `json:"cost_spread_ratio"`
	P50           *float64 `json:"p50_ms"` // null: no change began in the measured time
	P99           *float64 `json:"p99_ms"`
	P99Spread     float64  `json:"p99_spread_ratio"`
	Jain          *float64 `json:"fairness_jain"`
	JainSpread    float64  `json:"fairness_spread_ratio"`
	JainLeast     *float64 `json:"fairness_jain_of_least_fair_round"`
	Turns         float64  `json:"turns_per_process_and_round"`
	FairnessKnown bool     `json:"fairness_judged"` // false: too few turns
	Changes       int      `json:"changes"`
	Failed        int      `json:"failed_calls"`
	Lost          int      `json:"lost_changes"`
	Extra         int      `json:"extra_changes"`
	Error         string   `json:"first_error,omitempty"`
}

type recommendation struct {
	Mode         *string  `json:"mode"` // null: none is left
	Go           string   `json:"go"`
	Reasons      []string `json:"reasons"`
	WithinNoise  []string `json:"within_noise"`
	RunnerUp     *string  `json:"runner_up"` // null: no other mode is better in anything
	RunnerUpWhen []string `json:"runner_up_when"`
	Notes        []string `json:"notes"`
}

// JSON writes one document, of the first world; the other one is in it.
func (f Findings) JSON(w io.Writer) error {
	d := f.Worlds[0].document(f.Tool)
	v := f.Verdict
	d.Verdict = &verdictJSON{Mode: known(v.Mode != "", v.Mode), Go: v.Code, Same: v.Same}
	if len(f.Worlds) > 1 {
		uneven := f.Worlds[1].document(f.Tool)
		d.Uneven = &uneven
	}
	return shown.JSON(w, d, "  ")
}

func (r Report) document(tool string) document {
	s := r.Settings
	l := s.Workload
	d := document{
		Schema: schema, Tool: tool, World: cmp.Or(s.World, givenWorld), Command: s.Command(), RoundsMeasured: r.Rounds,
		Engine: engineJSON{Kind: "embedded"}, Skipped: append([]Skipped{}, r.Skipped...), Modes: []modeJSON{},
		Workload: workloadJSON{
			Processes: l.Processes, WorkersPerProcess: l.Workers, Items: l.Items, ZipfExponent: l.Zipf, ItemBytes: l.Size,
			WorkMS: ms(l.Work), PauseMS: ms(l.Pause), LatencyMedianMS: ms(l.Latency.Median), LatencyP99MS: ms(l.Latency.P99), LatencyPareto: l.Latency.Pareto, LatencyStallMS: ms(l.Latency.Stall),
			SpanMS: ms(l.Span), Rounds: s.Rounds, Seed: l.Seed, VirtualTime: s.Virtual, SideEffects: s.SideEffects, EveryState: s.EveryState,
			TimeLimitMS: ms(s.TimeLimit),
		},
		Prices: pricesJSON{Write: s.Prices.Write, Read: s.Prices.Read, Source: s.Prices.source()},
		Recommendation: recommendation{
			Mode: known(r.Advice.Choice != "", r.Advice.Choice), Go: r.Advice.Code, Reasons: orEmpty(r.Advice.Reasons), WithinNoise: orEmpty(r.Advice.Even),
			RunnerUp: known(r.Advice.RunnerUp != "", r.Advice.RunnerUp), RunnerUpWhen: orEmpty(r.Advice.When), Notes: orEmpty(r.Advice.Notes),
		},
	}
	if s.Endpoint != "" {
		d.Engine = engineJSON{"given", &s.Endpoint}
	}
	for _, m := range r.Modes {
		d.Modes = append(d.Modes, r.mode(m))
	}
	return d
}

func (r Report) mode(m Mode) modeJSON {
	did, began := m.Changes > 0, m.P99 > 0
	rank := r.rank(m.Name)
	return modeJSON{
		Mode: m.Name, Rank: known(rank > 0, rank), PartitionMax: known(!math.IsInf(m.PartitionMax, 0), m.PartitionMax), Strategy: m.strategy(), Options: orEmpty(m.options()), Excluded: r.Advice.Out[m.Name], Rounds: m.Rounds, MeasuredMS: ms(m.Measured),
		Rate: m.Rate, RateSpread: m.RateSpread, EffectiveRate: m.effectiveRate(),
		Requests: known(did, m.Requests), Reads: known(did, m.Reads), Writes: known(did, m.Writes), Wasted: known(did, m.Wasted),
		WriteUnits: known(did, m.WriteUnits), ReadUnits: known(did, m.ReadUnits), Cost: known(did, m.Cost), CostSpread: m.CostSpread,
		P50: known(began, ms(m.P50)), P99: known(began, ms(m.P99)), P99Spread: m.P99Spread,
		Jain: known(did, m.Jain), JainSpread: m.JainSpread, JainLeast: known(did, m.JainLeast), Turns: m.Turns, FairnessKnown: m.fairnessKnown(r.Settings),
		Changes: m.Changes, Failed: m.Failed, Lost: m.Lost, Extra: m.Extra, Error: m.Error,
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// known is null for what there is not.
func known[T any](is bool, v T) *T {
	if !is {
		return nil
	}
	return &v
}

// orEmpty keeps null out of the document: readers loop over lists.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
