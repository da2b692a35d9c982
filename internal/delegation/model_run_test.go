package delegation

import "testing"

// delegRuns are the searches of the protocol as it is, each wide in one way.
func delegRuns() map[string]delegRules {
	return map[string]delegRules{
		"two mails":   {slots: 1, mails: 2, deaths: 1},
		"two senders": {slots: 2, mails: 1, plain: true},
		"made anew":   {slots: 1, mails: 1, deaths: 1, remade: true},
	}
}

func TestModelDelegation(t *testing.T) {
	states := 0
	for name, r := range delegRuns() {
		f := run(r)
		t.Logf("%s: %d states", name, f.states)
		if f.wrong != "" {
			t.Errorf("%s: %v", name, f)
		}
		states += f.states
	}
	t.Logf("%d states in all", states)
}

// TestModelDelegationMutants leaves out one rule at a time.
func TestModelDelegationMutants(t *testing.T) {
	runs := delegRuns()
	for _, m := range []struct {
		name, run string
		mutate    func(*delegRules)
	}{
		{"two mails of a slot at a time", "two mails", func(r *delegRules) { r.twoMails = true }},
		{"mail that was seen before another's write", "two mails", func(r *delegRules) { r.keepsMail = true }},
		{"the item forgets what no row has", "two mails", func(r *delegRules) { r.forgetsAtOnce = true }},
		{"no entry is taken for not served", "two mails", func(r *delegRules) { r.ignoresRow = true }},
		{"a mail is taken back by its row alone", "two mails", func(r *delegRules) { r.blanksOnly = true }},
		{"a batch is posted, and written directly", "two mails", func(r *delegRules) { r.directAfterAll = true }},
		{"no condition on the item", "two mails", func(r *delegRules) { r.unconditional = true }},
		{"mail of an item that is gone", "made anew", func(r *delegRules) { r.noLife = true }},
		{"the row goes with its mail", "two mails", func(r *delegRules) { r.deletesRow = true }},
	} {
		t.Run(m.name, func(t *testing.T) {
			r := runs[m.run]
			m.mutate(&r)
			f := run(r)
			if f.wrong == "" {
				t.Errorf("nothing wrong was found in %d states", f.states)
			} else {
				t.Log(f)
			}
		})
	}
}
