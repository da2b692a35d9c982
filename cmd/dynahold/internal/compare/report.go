package compare

import "slices"

// Report is what a comparison has found.
type Report struct {
	Settings Settings
	Measured
	Advice Advice
}

// NewReport judges what was measured.
func NewReport(s Settings, m Measured) Report {
	return Report{Settings: s, Measured: m, Advice: Advise(s, m)}
}

// Wrong tells whether any mode lost or doubled a change.
func (r Report) Wrong() bool {
	return slices.ContainsFunc(r.Modes, func(m Mode) bool { return m.Lost > 0 || m.Extra > 0 })
}

// byMerit are the modes, the choice first and those out of the question last.
func (r Report) byMerit() (modes []Mode) {
	for _, name := range r.Advice.Ranked {
		m, _ := find(r.Modes, name)
		modes = append(modes, m)
	}
	for _, m := range r.Modes {
		if _, out := r.Advice.Out[m.Name]; out {
			modes = append(modes, m)
		}
	}
	return modes
}

// rank is a mode's place, from 1; 0 if it is out of the question.
func (r Report) rank(name string) int { return slices.Index(r.Advice.Ranked, name) + 1 }
