package compare

import "fmt"

// A need is something by which another mode than the best one may be the right
// one.
type need struct {
	name string
	// met tells whether m answers the need and best does not, or clearly less.
	met func(m, best Mode) bool
	// text completes "take m if ...".
	text func(best, m Mode) string
	// property: it follows from the mode, whatever was measured.
	property bool
}

var needs = []need{
	{
		name: "rate",
		met:  byRate.better,
		text: func(best, m Mode) string {
			return fmt.Sprintf("throughput counts most: %s changes per second, not %s", rate(m.effectiveRate()), rate(best.effectiveRate()))
		},
	},
	{
		name: "cost",
		met:  byCost.better,
		text: func(best, m Mode) string {
			return fmt.Sprintf("money counts most: %s per million changes, not %s", usd(m.Cost), usd(best.Cost))
		},
	},
	{
		name: "tail",
		met:  byTail.better,
		text: func(best, m Mode) string {
			return fmt.Sprintf("the slowest changes count most: p99 %s, not %s", m.tail(), best.tail())
		},
	},
	{
		name: "fairness",
		met:  byFairness.better,
		text: func(best, m Mode) string {
			return fmt.Sprintf("all must get the same share: fairness %.2f, not %.2f", m.Jain, best.Jain)
		},
	},
	{
		name:     "states",
		met:      func(m, best Mode) bool { return best.has(combine) && !m.has(combine) },
		text:     func(Mode, Mode) string { return "readers of the table's stream must see the item after every change" },
		property: true,
	},
	{
		name:     "once",
		met:      func(m, best Mode) bool { return m.once() && !best.once() },
		text:     func(Mode, Mode) string { return "a change has effects outside the item and should not run twice" },
		property: true,
	},
}

func needsMetBy(m, best Mode) (met []need) {
	for _, n := range needs {
		if n.met(m, best) {
			met = append(met, n)
		}
	}
	return met
}
