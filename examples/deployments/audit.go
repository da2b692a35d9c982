package main

import (
	"fmt"
	"slices"
)

// audit compares what was planned with what an environment's log says: each
// deployment ended once, never more at once than the limit, and the oldest
// first, failures and what was taken over left out. killed is a dispatcher
// whose visits may be without an end; what it ended without being able to say
// so is done once more.
func audit(environment string, plan []deployment, log []visit, killed string) (faults []string) {
	wrong := func(format string, args ...any) {
		faults = append(faults, environment+": "+fmt.Sprintf(format, args...))
	}
	inside := map[string]string{} // who is at which deployment
	ends, failures := map[string]int{}, map[string]int{}
	unsaid := map[string]bool{}
	var first []string // in the order of their first beginning
	for _, v := range log {
		switch v.what {
		case began:
			if who, again := inside[v.id]; again && who != killed {
				wrong("%s began %s, at which %s was", v.who, v.id, who)
			}
			inside[v.id] = v.who
			if n := len(inside); n > limitOf(environment) {
				wrong("%d at once, the limit is %d", n, limitOf(environment))
			}
			if !slices.Contains(first, v.id) {
				first = append(first, v.id)
			}
		case ended, failed:
			if inside[v.id] != v.who {
				wrong("%s ended %s, at which it was not", v.who, v.id)
			}
			delete(inside, v.id)
			if v.what == ended {
				ends[v.id]++
				unsaid[v.id] = unsaid[v.id] || v.who == killed
			} else {
				failures[v.id]++
			}
		}
	}
	var order []string
	for _, d := range plan {
		if d.Environment != environment {
			continue
		}
		order = append(order, d.ID)
		if n := ends[d.ID]; n != 1 && (n != 2 || !unsaid[d.ID]) {
			wrong("%s %s %s ended %d times", d.ID, d.Service, d.Version, ends[d.ID])
		}
		// Whoever was killed may have spent an attempt without a trace.
		if killed == "" && failures[d.ID] < d.Flaky {
			wrong("%s failed %d times, it must %d times", d.ID, failures[d.ID], d.Flaky)
		}
	}
	if limitOf(environment) == 1 && !slices.Equal(first, order) {
		wrong("begun in the order %v, planned as %v", first, order)
	}
	if len(inside) > 0 {
		wrong("still inside: %v", inside)
	}
	return faults
}
