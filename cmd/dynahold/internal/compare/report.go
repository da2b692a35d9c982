package compare

// Report is what a comparison has found.
type Report struct {
	Settings Settings
	Modes    []Mode // as measured
	Advice   Advice
}

// NewReport judges the modes.
func NewReport(s Settings, modes []Mode) Report {
	return Report{Settings: s, Modes: modes, Advice: Advise(s, modes)}
}

// Clean tells whether no call failed and nothing was lost or doubled.
func (r Report) Clean() bool {
	for _, m := range r.Modes {
		if m.Failed > 0 || m.Lost > 0 || m.Extra > 0 {
			return false
		}
	}
	return true
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
func (r Report) rank(name string) int {
	for i, n := range r.Advice.Ranked {
		if n == name {
			return i + 1
		}
	}
	return 0
}
