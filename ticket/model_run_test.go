package ticket

import (
	"cmp"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/search"
)

// forget drops what nobody will look at any more, so that states which differ
// in nothing else are one.
func (w *world) forget() {
	if o := &w.breaking; o.phase == 2 && o.lateB == 0 {
		*o = breaking{phase: 2}
	}
	for i := range w.who {
		m := &w.who[i]
		if m.phase != joining && m.phase != drawn {
			m.sent = 0
		}
		switch m.phase {
		case leaving:
			m.until, m.saw = 0, false
		case gone:
			// The ticket is still what late copies name.
			m.until, m.saw, m.deadline, m.doubt, m.passed, m.seen = 0, false, 0, false, false, snapshot{}
			if m.lateRenew == 0 {
				m.ticket = noTicket
			}
		}
	}
}

// search visits all states, breadth first.
func (r *rules) search() (states int, wrong string, trace []string) {
	f := search.All([]world{{late: r.late}}, func(w *world, step search.Emit[world, deed]) {
		r.next(*w, func(what deed, to world, wrong string) {
			to.forget()
			step(what, to, wrong)
		})
	})
	return f.States, f.Wrong, f.Trace(func(s search.Step[world, deed]) string { return s.Name.String() })
}

func TestModelKeepsItsPromises(t *testing.T) {
	t.Parallel()
	bounds := []rules{{members: 3, end: 3}, {members: 2, end: 4, late: 1},
		{members: 2, end: 3, tries: true, tampers: true, comesBack: true}, {members: 2, end: 3, late: 1, comesBack: true}, {members: 2, end: 3, breaks: true},
		{members: 3, end: 3, carries: true}, {members: 2, end: 3, late: 1, carries: true}}
	if !rig.Quick() {
		bounds = append(bounds, rules{members: 2, end: 4, late: 1, carries: true}, rules{members: 2, end: 3, late: 1, breaks: true, carries: true}, rules{members: 2, end: 3, late: 1, breaks: true}, rules{members: 3, end: 2, late: 1}, rules{members: 2, end: 3, late: 1, tries: true, tampers: true, comesBack: true})
	}
	if rig.Soaking() {
		bounds = append(bounds, rules{members: 3, end: 3, breaks: true}, rules{members: 2, end: 3, late: 1, breaks: true, comesBack: true}, rules{members: 3, end: 3, tries: true, tampers: true, comesBack: true}, rules{members: 2, end: 4, late: 1, comesBack: true}, rules{members: 3, end: 5}, rules{members: 2, end: 4, late: 2}, rules{members: 3, end: 3, late: 1})
	}
	for _, r := range bounds {
		states, wrong, trace := r.search()
		t.Logf("%d clients, %d half leases, %d late copies: %d states", r.members, r.end, r.late, states)
		if wrong != "" {
			t.Errorf("%s, after\n\t%s", wrong, strings.Join(trace, "\n\t"))
		}
		if states < 50_000 {
			t.Errorf("only %d states: the model does not reach what it should check", states)
		}
	}
}

func TestModelFindsWhatAMissingRuleBreaks(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]rules{
		"joining in two steps":                         {twoSteps: true},
		"joining again draws again":                    {rejoin: true},
		"leaving without a look at the ticket":         {blindLeave: true},
		"passing over whatever is there":               {blindPass: true, members: 2},
		"renewing without a look at the ticket":        {blindRenew: true},
		"passing over without counting":                {keepN: true, members: 2},
		"going in before the stale ones are removed":   {noRemoval: true, members: 2},
		"going in without being the first":             {notFirst: true},
		"going in after the own deadline":              {noDeadline: true, members: 2},
		"the deadline counts from the answer":          {fromAnswer: true, members: 2},
		"numbers of a new item begin at zero":          {zeroFloor: true, members: 2},
		"a removal in doubt is believed for all times": {anyDoubt: true, members: 2},
		"TryLock believes the count":                   {tries: true, tampers: true, trustCount: true, members: 2},
		"breaking without evidence":                    {breaks: true, noEvidence: true, members: 2},
		"breaking without a look at the ticket":        {breaks: true, comesBack: true, blindBreak: true, members: 2},
		"letting enter without a look at the ticket":   {carries: true, blindCarry: true, members: 2},
		"entering without being shown":                 {carries: true, hopeful: true, members: 2},
		"coming back without asking":                   {comesBack: true, noAsk: true, members: 2},
		"coming back to a place that is gone":          {comesBack: true, blindReturn: true, members: 2},
	} {
		r.members, r.end, r.late = cmp.Or(r.members, 3), 4, 1 // two are enough for most
		states, wrong, trace := r.search()
		if wrong == "" {
			t.Errorf("%s: survived %d states", name, states)
			continue
		}
		t.Logf("%s: found within %d states, %d steps: %s", name, states, len(trace), wrong)
		if testing.Verbose() {
			t.Logf("\n\t%s", strings.Join(trace, "\n\t"))
		}
	}
}
