package jobs

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
)

// A line is sorted by level, and then by time: the place of a job that has not the default
// begins with its level. Times begin with a digit or one of a to f.
var levelPrefixes = map[int]string{1: "#1-", 3: "p3-", 4: "p4-"}

// inLine is the sort key of a place at a level.
func inLine(level int, place string) string { return levelPrefixes[level] + place }

// withoutLevel is the place of a sort key.
func withoutLevel(key string) string {
	for _, prefix := range levelPrefixes {
		if place, ok := strings.CutPrefix(key, prefix); ok {
			return place
		}
	}
	return key
}

// level is the level of a job.
func (j jobRow) level() int {
	if n, err := ddb.Int(j.row[aLevel]); j.row[aLevel] != nil && err == nil && n >= firstLevel && n <= lastLevel {
		return int(n)
	}
	return defaultLevel
}

// levelIn is the level that an id says, behind its times.
func levelIn(id string) int {
	if len(id) > 2 && id[len(id)-2] == '-' {
		return int(id[len(id)-1] - '0')
	}
	return defaultLevel
}

// withLevel is an id that says a level.
func withLevel(id string, level int) string {
	if level == 0 || level == defaultLevel {
		return id
	}
	return id + "-" + strconv.Itoa(level)
}

// between are the sort keys between which the places of a level are.
func between(level int) (after, before string) {
	if level == defaultLevel {
		return "/", "g" // before all digits, and behind f
	}
	prefix := levelPrefixes[level]
	return prefix[:2], prefix[:2] + "."
}

// others is after how many starts one is that of another level than the first.
const others = 8

// othersTurn reports whether the next start of a resource is that of another level, and
// which of them are asked, in turn.
func (st *localResource) othersTurn() (levels []int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.level == 0 { // not all processes in the same order
		st.level = defaultLevel + rand.IntN(3)
	}
	if st.starts < others-1 {
		return nil
	}
	st.starts = -1 // that start is not counted
	if st.level--; st.level < defaultLevel {
		st.level = lastLevel
	}
	for level := range 3 {
		levels = append(levels, defaultLevel+(st.level-defaultLevel+3-level)%3)
	}
	return levels
}

// noteStarts counts starts.
func (st *localResource) noteStarts(n int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.starts += n
}

// readLevels finds the job that waits longest of the first of some levels that has one.
func (s *store) readLevels(ctx context.Context, st *localResource, r *resources.Row, levels []int) (*reading, error) {
	for _, level := range levels {
		l := &reading{s: s, r: r, st: st, want: 1, room: 1}
		after, before := between(level)
		page := resources.Page{After: after, Before: before, First: r.Jobs() + 1, Next: nextPage}
		for row, err := range s.table.Rows(ctx, jobsPrefix+r.Name, page) {
			if err != nil {
				return nil, err
			}
			j, err := parseJob(row)
			if l.judge(ctx, j, err); len(l.rows) > 0 || l.idle >= maxIdle {
				break
			}
		}
		if len(l.rows) > 0 {
			return l, nil
		}
	}
	return nil, nil
}
