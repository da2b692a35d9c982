package main

import (
	"cmp"
	"fmt"
	"slices"
)

// audit compares what was planned with what an environment's log says: each
// deployment ended, never more at once than the limit, and the oldest first,
// retries left out. Nothing was begun again that had ended, and nobody was
// worked beside, except where the one before is upset: killed, paused, or lost
// its job. What such a one ended without being able to say so is done again.
func audit(environment string, plan []deployment, log []visit, upset map[string]bool) (faults []string) {
	wrong := func(format string, args ...any) {
		faults = append(faults, environment+": "+fmt.Sprintf(format, args...))
	}
	inside := map[string]string{} // who is at which deployment
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
			if who, again := inside[v.id]; again && !upset[who] {
				wrong("%s began %s, at which %s was", v.who, v.id, who)
			}
			if who, again := endedBy[v.id]; again && !upset[who] {
				wrong("%s began %s, which %s had ended", v.who, v.id, who)
			}
			inside[v.id] = v.who
			if len(inside) > limitOf(environment) && !lapse(inside, v.id, upset) {
				wrong("%d at once, the limit is %d", len(inside), limitOf(environment))
			}
			if _, again := firsts[v.id]; !again {
				firsts[v.id] = v
				order = append(order, v.id)
			}
		case ended, failed:
			if inside[v.id] != v.who {
				wrong("%s ended %s, at which it was not", v.who, v.id)
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
		if len(upset) == 0 && failures[d.ID] < d.Flaky {
			wrong("%s failed %d times, it must %d times", d.ID, failures[d.ID], d.Flaky)
		}
	}
	if limitOf(environment) > 1 {
		// Those begun at once may write to the log in any order: the order of
		// their starts is that of their tokens. Who dies between the start and
		// the log leaves no token.
		slices.SortFunc(order, func(a, b string) int { return cmp.Compare(firsts[a].token, firsts[b].token) })
	}
	if (limitOf(environment) == 1 || len(upset) == 0) && !slices.Equal(order, planned) {
		wrong("begun in the order %v, planned as %v", order, planned)
	}
	if len(inside) > 0 {
		wrong("still inside: %v", inside)
	}
	return faults
}

// lapse removes a visit of one who is upset, other than the latest: a job whose
// holder died in its last attempt is with the dead letters, not taken over.
func lapse(inside map[string]string, latest string, upset map[string]bool) bool {
	for id, who := range inside {
		if id != latest && upset[who] {
			delete(inside, id)
			return true
		}
	}
	return false
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
