package timeline

import (
	"path"
	"slices"
	"strings"
	"time"
)

// whole makes names of one piece: in path.Match a * ends at a slash.
var whole = strings.NewReplacer("/", "\x00")

// Only leaves the locks whose name is one of these, or matches one as a pattern of
// path.Match. Without any it leaves all.
func (t Timeline) Only(names []string) Timeline {
	if len(names) == 0 {
		return t
	}
	t.Locks = slices.DeleteFunc(t.Locks, func(l Lock) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			matches, err := path.Match(whole.Replace(name), whole.Replace(l.Name))
			return name == l.Name || err == nil && matches
		})
	})
	return t
}

// Cut leaves the holds that looks saw, or may have missed, between two times. A zero
// time is no limit. What is left of a hold keeps its own times.
func (t Timeline) Cut(from, to time.Time) Timeline {
	if from.After(t.From) {
		t.From = from.UTC()
	}
	if !to.IsZero() && to.Before(t.To) {
		t.To = to.UTC()
	}
	for i := range t.Locks {
		t.Locks[i].Holds = slices.DeleteFunc(t.Locks[i].Holds, func(h Hold) bool {
			return h.Gone != nil && !h.Gone.After(t.From) || h.Gone == nil && h.Last.Before(t.From) || h.First.After(t.To)
		})
	}
	t.Locks = slices.DeleteFunc(t.Locks, func(l Lock) bool { return len(l.Holds) == 0 })
	return t
}
