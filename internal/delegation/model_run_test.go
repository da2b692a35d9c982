package delegation

import (
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
)

// delegRuns are the searches of the protocol as it is, each wide in one way.
func delegRuns() map[string]delegRules {
	return map[string]delegRules{
		"two mails":     {slots: 1, mails: 2, leaders: 2, deaths: 1},
		"two senders":   {slots: 2, mails: 1, leaders: 2, deaths: 1},
		"three senders": {slots: 3, mails: 1, deaths: 1},
		"three, the first of which has two mails": {slots: 3, mails: 2, deaths: 1, plain: true, few: true},
		"made anew":      {slots: 1, mails: 1, leaders: 2, deaths: 1, remade: true},
		"TTL":            {slots: 2, mails: 1, deaths: 1, ttl: true},
		"TTL, two mails": {slots: 1, mails: 2, leaders: 2, deaths: 1, ttl: true},
	}
}

// delegFull are those that take longer.
func delegFull() map[string]delegRules {
	return map[string]delegRules{
		"three senders, two leaders":   {slots: 3, mails: 1, leaders: 2, deaths: 1},
		"three senders with two mails": {slots: 3, mails: 2, deaths: 1, plain: true, sends: true},
		"two senders with two mails":   {slots: 2, mails: 2, deaths: 1},
		"TTL, two leaders":             {slots: 2, mails: 1, leaders: 2, deaths: 1, ttl: true},
	}
}

func TestModelDelegation(t *testing.T) {
	search := func(all map[string]delegRules) (states int) {
		for name, r := range all {
			f := run(r)
			t.Logf("%s: %d states", name, f.states)
			if f.wrong != "" {
				t.Errorf("%s: %v", name, f)
			}
			states += f.states
		}
		return states
	}
	states := search(delegRuns())
	if !rig.Quick() {
		states += search(delegFull())
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
		{"a row that is gone is taken for not served", "TTL, two mails", func(r *delegRules) { r.goneBelieved = true }},
		{"a post that comes again after TTL is believed", "TTL, two mails", func(r *delegRules) { r.agedBelieved = true }},
		{"a mail is carried out however old it is", "TTL, two mails", func(r *delegRules) { r.lateServed = true }},
		{"mail that was seen before another's write, of three", "three, the first of which has two mails", func(r *delegRules) { r.keepsMail = true }},
		{"the item forgets what no row has, of three", "three, the first of which has two mails", func(r *delegRules) { r.forgetsAtOnce = true }},
		{"no entry is taken for not served, of three", "three, the first of which has two mails", func(r *delegRules) { r.ignoresRow = true }},
		{"a batch is posted, and written directly, of three", "three, the first of which has two mails", func(r *delegRules) { r.directAfterAll = true }},
		{"no condition on the item, of three", "three, the first of which has two mails", func(r *delegRules) { r.unconditional = true }},
	} {
		t.Run(m.name, func(t *testing.T) {
			r := runs[m.run]
			m.mutate(&r)
			f := run(r)
			if f.wrong == "" {
				t.Errorf("nothing wrong was found in %d states", f.states)
			} else {
				t.Logf("%s: found within %d states: %v", m.name, f.states, f)
			}
		})
	}
}
