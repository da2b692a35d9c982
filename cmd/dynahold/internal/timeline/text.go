package timeline

import (
	"fmt"
	"strings"
	"time"
)

// Head are the columns of Rows.
func Head() []string {
	return []string{"lock", "holder", "token", "first seen", "last seen", "for", "end"}
}

// Rows are all holds as text, by lock. With several tables a lock has its table before it.
func (t Timeline) Rows() (rows [][]string) {
	for _, l := range t.Locks {
		for _, h := range l.Holds {
			rows = append(rows, []string{t.label(l), h.Who(), fmt.Sprint(h.Token), stamp(h.First), stamp(h.Last), h.Lasted(), h.Ending()})
		}
	}
	return rows
}

// label is the name of a lock in a list of all.
func (t Timeline) label(l Lock) string {
	name := strings.TrimSpace(l.Name + " " + l.Sort)
	if len(t.Tables) > 1 {
		return l.Table + ": " + name
	}
	return name
}

// Unwatched are the times between the first look at a table and the last one in which
// nobody looked.
func (t Table) Unwatched() (gaps []Span) {
	for i := 1; i < len(t.Watched); i++ {
		gaps = append(gaps, Span{t.Watched[i-1].To, t.Watched[i].From})
	}
	return gaps
}

// Notes say what the rows do not know.
func (t Timeline) Notes() (notes []string) {
	for _, table := range t.Tables {
		note := fmt.Sprintf("%s: watched from %s to %s", table.Name, stamp(table.Watched[0].From), stamp(table.Watched[len(table.Watched)-1].To))
		if table.Every > 0 {
			note += fmt.Sprintf(", a look every %v", time.Duration(table.Every)*time.Millisecond)
		}
		for i, gap := range table.Unwatched() {
			if i == maxGaps {
				note += fmt.Sprintf(" and %d more times", len(table.Unwatched())-maxGaps)
				break
			}
			if i == 0 {
				note += "; nobody looked"
			} else {
				note += ","
			}
			note += fmt.Sprintf(" from %s to %s", stamp(gap.From), stamp(gap.To))
		}
		notes = append(notes, note)
	}
	return notes
}

const maxGaps = 5 // that are told one by one

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
