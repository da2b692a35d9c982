package txn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A record is what a transaction has seen and written. Every item is a log to which
// transactions append, so that the logs tell in which order writes were applied, and
// each reading, which of them it has seen (Kingsbury and Alvaro, "Elle: Inferring
// Isolation Anomalies from Experimental Observations").
type record struct {
	name       string
	began, end time.Time
	saw        map[string][]string // logs as read, before its own entries
	wrote      []string            // items to which it appended its name
	unknown    bool                // whether it was applied is not known
}

// violation says why a history is not that of transactions one after the other, in
// an order that agrees with the clock; "" if it is. logs are the items at the end.
func violation(history []record, logs map[string][]string) string {
	at := map[string]int{} // transactions by name
	for i, r := range history {
		at[r.name] = i
	}
	applied := map[string]bool{}
	for item, log := range logs {
		for n, name := range log {
			if slices.Contains(log[:n], name) {
				return fmt.Sprintf("%s is applied to %s twice", name, item)
			}
			applied[name] = true
		}
	}
	before := make([]map[int]string, len(history)) // edges, with their reasons
	edge := func(from, to, why string) {
		f, t := at[from], at[to]
		if from != to {
			if before[f] == nil {
				before[f] = map[int]string{}
			}
			before[f][t] = why
		}
	}
	for _, r := range history {
		if len(r.wrote) > 0 && !applied[r.name] {
			if !r.unknown {
				return fmt.Sprintf("%s is not applied to %v; it has seen %v, from %v to %v; in the end %v", r.name, r.wrote, r.saw, r.began, r.end, logs)
			}
			continue
		}
		for _, item := range r.wrote {
			if !slices.Contains(logs[item], r.name) {
				return fmt.Sprintf("%s is applied, but not to %s", r.name, item)
			}
		}
		for item, saw := range r.saw {
			log := logs[item]
			if len(saw) > len(log) || !slices.Equal(saw, log[:len(saw)]) {
				return fmt.Sprintf("%s has seen %v of %s, which is %v", r.name, saw, item, log)
			}
			if len(saw) > 0 {
				edge(saw[len(saw)-1], r.name, "writes "+item+" as seen by")
			}
			if len(saw) < len(log) {
				edge(r.name, log[len(saw)], "has not seen "+item+" of")
			}
		}
	}
	for item, log := range logs {
		for n := 1; n < len(log); n++ {
			edge(log[n-1], log[n], "writes "+item+" before")
		}
	}
	for _, r := range history {
		for _, later := range history {
			if !r.unknown && r.end.Before(later.began) && (len(r.wrote) == 0 || applied[r.name]) && (len(later.wrote) == 0 || applied[later.name]) {
				edge(r.name, later.name, "ends before")
			}
		}
	}
	return circle(history, before)
}

// circle finds a circle of edges.
func circle(history []record, before []map[int]string) string {
	state := make([]int, len(history)) // 0: new, 1: on the way, 2: done
	var way []int
	var visit func(i int) string
	visit = func(i int) string {
		state[i] = 1
		way = append(way, i)
		for next := range before[i] {
			switch state[next] {
			case 0:
				if found := visit(next); found != "" {
					return found
				}
			case 1:
				var text strings.Builder
				circle := slices.Concat(way[slices.Index(way, next):], []int{next})
				for n, from := range circle[:len(circle)-1] {
					fmt.Fprintf(&text, "%s %s ", history[from].name, before[from][circle[n+1]])
				}
				return text.String() + history[next].name
			}
		}
		state[i] = 2
		way = way[:len(way)-1]
		return ""
	}
	for i := range history {
		if state[i] == 0 {
			if found := visit(i); found != "" {
				return found
			}
		}
	}
	return ""
}

// The check finds what must not happen.
func TestViolations(t *testing.T) {
	now := time.Now()
	at := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	type logs = map[string][]string
	for _, c := range []struct {
		name    string
		history []record
		logs    logs
		wrong   bool
	}{
		{"one after the other", []record{
			{name: "a", began: at(0), end: at(1), saw: logs{"x": nil, "y": nil}, wrote: []string{"x"}},
			{name: "b", began: at(2), end: at(3), saw: logs{"x": {"a"}, "y": nil}, wrote: []string{"y"}},
		}, logs{"x": {"a"}, "y": {"b"}}, false},
		{"write skew", []record{
			{name: "a", began: at(0), end: at(3), saw: logs{"x": nil, "y": nil}, wrote: []string{"x"}},
			{name: "b", began: at(0), end: at(3), saw: logs{"x": nil, "y": nil}, wrote: []string{"y"}},
		}, logs{"x": {"a"}, "y": {"b"}}, true},
		{"lost update", []record{
			{name: "a", began: at(0), end: at(3), saw: logs{"x": nil}, wrote: []string{"x"}},
			{name: "b", began: at(0), end: at(3), saw: logs{"x": nil}, wrote: []string{"x"}},
		}, logs{"x": {"b"}}, true},
		{"long fork", []record{
			{name: "a", began: at(0), end: at(9), wrote: []string{"x"}},
			{name: "b", began: at(0), end: at(9), wrote: []string{"y"}},
			{name: "c", began: at(0), end: at(9), saw: logs{"x": {"a"}, "y": nil}},
			{name: "d", began: at(0), end: at(9), saw: logs{"x": nil, "y": {"b"}}},
		}, logs{"x": {"a"}, "y": {"b"}}, true},
		{"half of a transaction", []record{
			{name: "a", began: at(0), end: at(3), wrote: []string{"x", "y"}},
		}, logs{"x": {"a"}, "y": nil}, true},
		{"an old read", []record{
			{name: "a", began: at(0), end: at(1), wrote: []string{"x"}},
			{name: "b", began: at(2), end: at(3), saw: logs{"x": nil}},
		}, logs{"x": {"a"}}, true},
		{"applied twice", []record{{name: "a", began: at(0), end: at(1), wrote: []string{"x"}}}, logs{"x": {"a", "a"}}, true},
		{"not applied, as nobody knew", []record{{name: "a", began: at(0), end: at(1), wrote: []string{"x"}, unknown: true}}, logs{"x": nil}, false},
	} {
		if found := violation(c.history, c.logs); (found != "") != c.wrong {
			t.Errorf("%s: %q", c.name, found)
		}
	}
}
