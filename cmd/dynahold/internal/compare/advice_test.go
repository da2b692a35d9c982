package compare

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

func with(change func(*Settings)) Settings {
	s := hot
	change(&s)
	return s
}

func TestAdvice(t *testing.T) {
	sideEffects := with(func(s *Settings) { s.SideEffects = true })
	everyState := with(func(s *Settings) { s.EveryState = true })
	large := with(func(s *Settings) { s.Workload.Size = 100 << 10 })
	cases := []struct {
		name     string
		settings Settings
		modes    []Mode
		choice   string
		runnerUp string
		says     []string // somewhere in the advice
		not      []string // nowhere in it
	}{
		{
			name: "who loses a change is out at any rate", settings: hot,
			modes:  []Mode{mode("optimistic", rated(9000), loses(1)), mode("pessimistic")},
			choice: "pessimistic",
			says:   []string{`Correctness comes first, and "optimistic" lost 1 change`},
			not:    []string{"No mode lost"},
		},
		{
			name: "who doubles a change is out too", settings: hot,
			modes:  []Mode{mode("optimistic", rated(9000), doubles(2)), mode("pessimistic")},
			choice: "pessimistic",
			says:   []string{"made 2 changes that nobody was told of"},
		},
		{
			name: "nobody is left", settings: hot,
			modes: []Mode{mode("optimistic", loses(1)), mode("pessimistic", func(m *Mode) { m.Changes = 0 })},
			says:  []string{"No mode is left", "lost 1 change", "made no change"},
		},
		{
			name: "calls that failed count against a mode", settings: hot,
			modes:  []Mode{mode("optimistic", rated(9000), fails(3)), mode("pessimistic")},
			choice: "pessimistic", says: []string{`"optimistic" (3 calls failed)`},
		},
		{
			name: "unless all have failed ones", settings: hot,
			modes:  []Mode{mode("optimistic", rated(900), fails(3)), mode("pessimistic", fails(1))},
			choice: "optimistic", runnerUp: "pessimistic", says: []string{"No mode is without fault", "3 calls failed"},
		},
		{
			name: "starving others is no way to be fast", settings: hot,
			modes:  []Mode{mode("optimistic, warm", rated(900), tail(10*time.Millisecond), jain(0.25)), mode("pessimistic")},
			choice: "pessimistic",
			says:   []string{`"optimistic, warm" was faster, 900 changes per second, but unfair (0.25)`, "some processes got far less"},
		},
		{
			name: "with side effects only who runs a change once", settings: sideEffects,
			modes: []Mode{
				mode("optimistic", rated(900)), mode("pessimistic, combine, race", rated(900)),
				mode("pessimistic, race", rated(200)), mode("pessimistic", rated(150), tail(90*time.Millisecond)),
			},
			choice: "pessimistic, race", runnerUp: "pessimistic",
			says: []string{"A change has side effects", "fencing token", `"optimistic" (runs a change again after a conflict`, `"pessimistic, combine, race" (may run a change again`, "the slowest changes count most"},
			not:  []string{"nolock.Put"},
		},
		{
			name: "combining is the choice, and what it does to streams is said", settings: hot,
			modes:  []Mode{mode("pessimistic"), mode("pessimistic, combine", rated(2000), writes(0.1)), mode("optimistic", rated(150))},
			choice: "pessimistic, combine", runnerUp: "pessimistic",
			says: []string{"fewer events in the table's stream", "one write for about 10", "10 times the rate", "the same p99", "readers of the table's stream must see the item after every change"},
		},
		{
			name: "streams that must see every state rule combining out", settings: everyState,
			modes:  []Mode{mode("pessimistic"), mode("pessimistic, combine", rated(2000)), mode("optimistic", rated(150))},
			choice: "pessimistic", says: []string{`"pessimistic, combine" (stores several changes as one state`}, not: []string{"fewer events"},
		},
		{
			name: "within noise the one with the fewest settings", settings: hot,
			modes:  []Mode{mode("optimistic, warm", rated(204)), mode("optimistic", rated(200))},
			choice: "optimistic",
			says:   []string{`"optimistic, warm" is within noise of it`, "seldom collide"},
		},
		{
			name: "within noise of the choice, not of a mode that is within noise of it", settings: hot,
			modes: []Mode{
				mode("optimistic, warm", rated(204)), mode("optimistic", rated(196)),
				mode("optimistic, warm, combine", rated(212), tail(104900*time.Microsecond)),
			},
			choice: "optimistic", runnerUp: "optimistic, warm, combine",
			says: []string{`"optimistic, warm" is within noise of it`, "throughput counts most: 212"},
			not:  []string{`"optimistic, warm, combine" are within`, `"optimistic, warm, combine" is within`},
		},
		{
			name: "the fairest of the unfair is not called the best", settings: hot,
			modes:  []Mode{mode("optimistic", rated(1000), jain(0.3)), mode("pessimistic", rated(300), jain(0.6))},
			choice: "pessimistic", runnerUp: "optimistic",
			says: []string{"the best of the three together among the fairest"},
		},
		{
			name: "among those at the limit, too", settings: hot,
			modes:  []Mode{mode("optimistic", rated(1000), jain(0.3)), mode("pessimistic", rated(900), limit(300), jain(0.6))},
			choice: "pessimistic", runnerUp: "optimistic",
			says: []string{"the best of rate, cost and p99 together among the fairest"},
		},
		{
			name: "the fastest is who makes most within the limit", settings: hot,
			modes: []Mode{
				mode("optimistic, warm", rated(2000), limit(400), jain(0.25)), mode("optimistic, combine", rated(900), jain(0.25)), mode("pessimistic"),
			},
			choice: "pessimistic", says: []string{`"optimistic, combine" was faster, 900 changes per second`},
		},
		{
			name: "what the rounds are apart is noise too", settings: hot,
			modes:  []Mode{mode("optimistic, warm", rated(240), spreads(0.3)), mode("optimistic", rated(200), spreads(0.3))},
			choice: "optimistic", says: []string{`"optimistic, warm" is within noise of it`},
		},
		{
			name: "with steady rounds it is not", settings: hot,
			modes:  []Mode{mode("optimistic, warm", rated(240)), mode("optimistic", rated(200))},
			choice: "optimistic, warm", not: []string{"within noise of it"},
		},
		{
			name: "half the cost counts as much as twice the rate", settings: hot,
			modes:  []Mode{mode("optimistic", rated(200), costs(0.4)), mode("pessimistic", rated(400), costs(1))},
			choice: "optimistic", runnerUp: "pessimistic",
			says: []string{"throughput counts most: 400 changes per second, not 200", "2.0 times the rate", "2.5 times the cost"},
		},
		{
			name: "money", settings: hot,
			modes:  []Mode{mode("optimistic", rated(600)), mode("pessimistic", costs(0.5))},
			choice: "optimistic", runnerUp: "pessimistic",
			says: []string{"money counts most: $0.500 per million changes, not $1.00", "effects outside the item"},
		},
		{
			name: "fairness", settings: hot,
			modes:  []Mode{mode("optimistic", rated(600), jain(0.85)), mode("optimistic, fair")},
			choice: "optimistic", runnerUp: "optimistic, fair",
			says: []string{"all must get the same share: fairness 1.00, not 0.85"},
		},
		{
			name: "large items", settings: large,
			modes:  []Mode{mode("optimistic", costs(70)), mode("pessimistic", costs(125), func(m *Mode) { m.WriteUnits = 200 })},
			choice: "optimistic", runnerUp: "pessimistic",
			says: []string{"At 100KB the item is large", "bills the whole item a second time", "200 write units", "nolock.Put is one write without a read, $62.50"},
			not:  []string{"small item beside"},
		},
		{
			name: "large items under a lock", settings: with(func(s *Settings) { s.Workload.Size, s.SideEffects = 100<<10, true }),
			modes:  []Mode{mode("optimistic", costs(70)), mode("pessimistic", costs(125))},
			choice: "pessimistic", says: []string{"better kept in a small item beside the large one"},
		},
		{
			name: "what DynamoDB lets through, not what the engine does", settings: hot,
			modes:  []Mode{mode("optimistic", rated(5000), limit(100)), mode("pessimistic", rated(400), limit(800))},
			choice: "pessimistic", says: []string{"pessimistic\" makes 400 changes per second"}, not: []string{"never throttles"},
		},
		{
			name: "the limit is named where it holds the choice up", settings: hot,
			modes:  []Mode{mode("pessimistic", rated(4000), limit(800))},
			choice: "pessimistic", says: []string{"lets \"pessimistic\" make about 800 changes per second", "p99 of 100 ms was measured at 4,000", "never throttles", "1,000 write units"},
			not: []string{"makes 800"},
		},
		{
			name: "a p99 above the limit is called so", settings: hot,
			modes:  []Mode{mode("optimistic", rated(900), costs(0.5)), mode("pessimistic", rated(4000), limit(800), tail(50*time.Millisecond))},
			choice: "optimistic", runnerUp: "pessimistic",
			says: []string{"p99 50.0 ms at 4,000 changes per second, without the limit of a partition, not 100 ms", "50 % of the p99 without the limit"},
		},
		{
			name: "few turns say nothing against a mode", settings: hot,
			modes:  []Mode{mode("optimistic", jain(0.6), turns(2)), mode("pessimistic", rated(900), jain(0.95), turns(3))},
			choice: "pessimistic",
			says:   []string{`"optimistic" (too few turns to tell whether it is fair)`, "2.0 of each", "A longer --time-limit"}, not: []string{"unfair"},
		},
		{
			name: "and where it is so of all, the one that is the most even", settings: hot,
			modes:  []Mode{mode("optimistic", rated(900), jain(0.4), turns(2)), mode("pessimistic", jain(0.7), turns(3))},
			choice: "pessimistic", runnerUp: "optimistic", says: []string{"No mode is without fault here", "too few turns"},
		},
		{
			name: "a minute without a turn is one", settings: hot,
			modes:  []Mode{mode("optimistic", rated(900), jain(0.4), turns(1), func(m *Mode) { m.Measured = time.Minute }), mode("pessimistic")},
			choice: "pessimistic", says: []string{`"optimistic" (unfair`},
		},
		{
			name: "where all are unfair the fairest comes before the fastest", settings: sideEffects,
			modes:  []Mode{mode("pessimistic, race", rated(900), jain(0.33), tail(10*time.Millisecond)), mode("pessimistic", jain(0.7))},
			choice: "pessimistic", runnerUp: "pessimistic, race", says: []string{"No mode is without fault here"},
		},
		{
			name: "fair in each round, however far they are apart", settings: hot,
			modes:  []Mode{mode("optimistic", rated(900), jain(0.8), spreads(0.2)), mode("pessimistic", jain(0.85), spreads(0.2))},
			choice: "optimistic", runnerUp: "pessimistic", not: []string{"same share"},
		},
		{
			name: "fair on average, but not in each round", settings: hot,
			modes:  []Mode{mode("optimistic", rated(900), jain(0.95), leastFair(0.79)), mode("pessimistic")},
			choice: "pessimistic", says: []string{`"optimistic" (unfair in one of the rounds`},
		},
		{
			name: "how fair they are is open only of modes that were measured in all rounds", settings: hot,
			modes:  []Mode{mode("optimistic", jain(0.6), turns(2), func(m *Mode) { m.Rounds = 1 }), mode("pessimistic")},
			choice: "pessimistic", says: []string{"too few turns"}, not: []string{"A longer --time-limit"},
		},
		{
			name: "who began no change has no percentile, and not the best one", settings: hot,
			modes:  []Mode{mode("optimistic", rated(900), tail(0)), mode("pessimistic")},
			choice: "pessimistic", says: []string{`"optimistic" (began no change`}, not: []string{"NaN", "Inf"},
		},
		{
			name: "few changes are an accident", settings: hot,
			modes: []Mode{mode("optimistic", func(m *Mode) { m.Changes = 99 }), mode("pessimistic", func(m *Mode) { m.Changes, m.P99 = 0, 0 })},
			says:  []string{`"optimistic" (made only 99 changes`, "takes 100 changes", "try a longer --time-limit"},
		},
		{
			name: "in real time so many take a span that is named", settings: with(func(s *Settings) { s.Virtual, s.Workload.Work = false, 5*time.Second }),
			modes: []Mode{mode("optimistic", func(m *Mode) { m.Changes = 9 })},
			says:  []string{"need about 3m to make one each", "try --span 17m --time-limit 1h42m"},
		},
		{
			name: "without prices cost is no matter", settings: with(func(s *Settings) { s.Prices = Prices{} }),
			modes:  []Mode{mode("optimistic", rated(600), costs(0)), mode("pessimistic", costs(0), tail(50*time.Millisecond))},
			choice: "optimistic", runnerUp: "pessimistic", not: []string{"cost of", "the cost", "$", "NaN", "Inf"},
		},
		{
			name: "one price of nothing", settings: with(func(s *Settings) { s.Prices = Prices{Read: 0.125} }),
			modes:  []Mode{mode("optimistic", rated(200), costs(0.125)), mode("pessimistic", costs(0))},
			choice: "pessimistic", says: []string{"a cost of $0.00, not $0.125"},
		},
		{
			name: "the queue is in the item", settings: hot,
			modes:  []Mode{mode("pessimistic", func(m *Mode) { m.WriteUnits = 6 })},
			choice: "pessimistic", says: []string{"bills 6.00 units, an item of 1KB bills 1", "5 bytes"},
		},
		{
			name: "events are another matter", settings: hot,
			modes:  []Mode{mode("nolock", rated(9000)), mode("optimistic")},
			choice: "optimistic", says: []string{`"nolock" (made for events`, "nolock.Put is one write without a read, $0.625 per million"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := Advise(c.settings, of(c.modes...))
			if a.Choice != c.choice || a.RunnerUp != c.runnerUp {
				t.Errorf("choice %q, runner-up %q; want %q, %q", a.Choice, a.RunnerUp, c.choice, c.runnerUp)
			}
			r := Report{Settings: c.settings, Measured: of(c.modes...), Advice: a}
			all := strings.Join(slices.Concat(a.Reasons, a.When, a.Notes), "\n")
			if a.RunnerUp != "" {
				all += "\n" + r.runnerUp()
			}
			for _, s := range c.says {
				if !strings.Contains(all, s) {
					t.Errorf("does not say %q:\n%s", s, all)
				}
			}
			for _, s := range c.not {
				if strings.Contains(all, s) {
					t.Errorf("says %q:\n%s", s, all)
				}
			}
			if len(a.Ranked)+len(a.Out) != len(c.modes) {
				t.Errorf("%d modes; ranked %q, out %q", len(c.modes), a.Ranked, a.Out)
			}
		})
	}
}

// Needs that no figure shows get a mode each, once.
func TestNeedsAreAnsweredOnce(t *testing.T) {
	a := Advise(hot, of(measured()...))
	if a.Choice != "pessimistic, combine" || a.RunnerUp != "optimistic, combine" {
		t.Fatalf("choice %q, runner-up %q", a.Choice, a.RunnerUp)
	}
	notes := strings.Join(a.Notes, "\n")
	for _, need := range []string{"must see the item after every change: \"pessimistic\"", "should not run twice: \"pessimistic\""} {
		if strings.Count(notes, need) != 1 {
			t.Errorf("%q is not in there once:\n%s", need, notes)
		}
	}
}

// Every mode of the library is understood: its strategy, its settings, and how
// it is made.
func TestModesOfTheLibrary(t *testing.T) {
	for _, c := range load.Modes() {
		m := mode(c.Name)
		if !slices.Contains([]string{nolock, optimistic, pessimistic}, m.strategy()) {
			t.Errorf("%q has the strategy %q", c.Name, m.strategy())
		}
		for _, o := range m.options() {
			if !slices.Contains([]string{warm, combine, fair, race}, o) {
				t.Errorf("%q has the setting %q", c.Name, o)
			}
		}
	}
	if got, want := code(mode("optimistic, warm, combine, fair")), "optimistic.New(table, optimistic.Config{Warm: 1024, Combine: true, Fair: true})"; got != want {
		t.Errorf("%s", got)
	}
	if got, want := code(mode("pessimistic")), "pessimistic.New(table, pessimistic.Config{})"; got != want {
		t.Errorf("%s", got)
	}
}
