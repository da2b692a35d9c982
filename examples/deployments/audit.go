package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// evidence is what the audit knows beside the plan and the log.
type evidence struct {
	// upset dispatchers were killed, paused, or lost a job: the end of a visit
	// may be missing, or stand in the log after others have taken over.
	upset map[string]bool
	// unlogged deployments were started, and given up before the log had a line
	// of them: by a dispatcher that had lost the job, or whose attempts were spent
	// by deaths. They went to a later place in line.
	unlogged map[string]bool
}

// audit compares what was planned with what an environment's log says: each
// deployment ended, never more at once than the limit, and the oldest first,
// retries left out. Nothing was begun again that had ended, and nobody was
// worked beside, except where the one before is upset. What such a one ended
// without being able to say so is done again.
func audit(environment string, plan []deployment, log []visit, known evidence) (faults []string) {
	wrong := func(format string, args ...any) {
		faults = append(faults, environment+": "+fmt.Sprintf(format, args...))
	}
	inside := map[string]visit{} // the latest at each deployment
	endedBy, failures := map[string]string{}, map[string]int{}
	firsts := map[string]visit{}
	var order []string // of first beginnings
	tokens := map[string]int64{}
	seen := map[visit]bool{}
	for _, v := range log {
		if seen[v] {
			continue // a request that was repeated, for its answer was lost
		}
		seen[v] = true
		fenced := v.id
		if limitOf(environment) == 1 {
			fenced = ""
		}
		if v.token < tokens[fenced] {
			wrong("%s %s %s with token %d after %d", v.who, v.what, v.id, v.token, tokens[fenced])
		}
		tokens[fenced] = v.token
		switch v.what {
		case began:
			if before, again := inside[v.id]; again && !known.upset[before.who] {
				wrong("%s began %s, at which %s was", v.who, v.id, before.who)
			}
			if who, again := endedBy[v.id]; again && !known.upset[who] {
				wrong("%s began %s, which %s had ended", v.who, v.id, who)
			}
			inside[v.id] = v
			if n := certain(inside, known.upset); n > limitOf(environment) {
				wrong("%d at once, the limit is %d", n, limitOf(environment))
			}
			if _, again := firsts[v.id]; !again {
				firsts[v.id] = v
				order = append(order, v.id)
			}
		case ended, failed:
			if at, ok := inside[v.id]; !ok || at.who != v.who || at.token != v.token {
				wrong("%s %s %s, at which it was not", v.who, v.what, v.id)
			}
			delete(inside, v.id)
			if v.what == ended {
				endedBy[v.id] = v.who
			} else {
				failures[v.id]++
			}
		default:
			wrong("the log says %q", v.what)
		}
	}
	var planned []string
	for _, d := range plan {
		if d.Environment != environment {
			continue
		}
		planned = append(planned, d.ID)
		if endedBy[d.ID] == "" {
			wrong("%s %s never ended", d.ID, d.name())
		}
		// Whoever was killed may have spent an attempt without a trace.
		if len(known.upset) == 0 && !known.unlogged[d.ID] && failures[d.ID] < d.Flaky {
			wrong("%s failed %d times, it must %d times", d.ID, failures[d.ID], d.Flaky)
		}
	}
	if limitOf(environment) > 1 {
		// Those begun at once may write to the log in any order: the order of
		// their starts is that of their tokens. Who dies between the start and
		// the log leaves no token.
		slices.SortFunc(order, func(a, b string) int { return cmp.Compare(firsts[a].token, firsts[b].token) })
	}
	// The log does not know when these were first started.
	unlogged := func(id string) bool { return known.unlogged[id] }
	order, planned = slices.DeleteFunc(order, unlogged), slices.DeleteFunc(planned, unlogged)
	if (limitOf(environment) == 1 || len(known.upset) == 0) && !slices.Equal(order, planned) {
		wrong("begun in the order %v, planned as %v", order, planned)
	}
	// A job whose holder died in its last attempt was with the dead letters, not
	// taken over; but it was begun again in the end.
	for _, id := range slices.Sorted(maps.Keys(inside)) {
		wrong("%s is still at %s", inside[id].who, id)
	}
	return faults
}

// certain counts the visits that held their permits for sure: not those of the
// upset, whose leases may have been over for long, whatever they write later.
func certain(inside map[string]visit, upset map[string]bool) (n int) {
	for _, v := range inside {
		if !upset[v.who] {
			n++
		}
	}
	return n
}

// takenOver counts the deployments that were begun by one while another was at
// them.
func takenOver(log []visit) (n int) {
	inside := map[string]visit{}
	for _, v := range log {
		if before, at := inside[v.id]; v.what == began && at && before.token != v.token {
			n++
		}
		if v.what == began {
			inside[v.id] = v
		} else {
			delete(inside, v.id)
		}
	}
	return n
}
