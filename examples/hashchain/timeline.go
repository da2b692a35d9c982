package main

import (
	"fmt"
	"strings"
	"time"
)

// hold is a stretch of time in which a worker held the lock.
type hold struct {
	worker   string
	from, to time.Time
	ended    bool // committed; otherwise the worker failed or died
}

// holds pairs what the workers said. A hold that never ended lasts until the
// next one began, for that is when its lease was over.
func holds(events []event, end time.Time) (all []hold) {
	open := map[string]int{} // worker -> index of its hold
	for _, e := range events {
		switch e.Kind {
		case acquired:
			open[e.Worker] = len(all)
			all = append(all, hold{worker: e.Worker, from: e.At})
		case committed:
			if i, ok := open[e.Worker]; ok {
				all[i].to, all[i].ended = e.At, true
				delete(open, e.Worker)
			}
		}
	}
	for i := range all {
		if all[i].ended {
			continue
		}
		all[i].to = end
		if i+1 < len(all) {
			all[i].to = all[i+1].from
		}
	}
	return all
}

// overlaps finds two workers that held the lock at once.
func overlaps(all []hold) (faults []string) {
	for i := 1; i < len(all); i++ {
		if before := all[i-1]; before.ended && all[i].from.Before(before.to) {
			// Workers speak after the fact: a commit is told a moment after
			// the next worker can have the lock, so only a real overlap counts.
			if late := before.to.Sub(all[i].from); late > 100*time.Millisecond {
				faults = append(faults, fmt.Sprintf("%s and %s held the lock at once for %v", before.worker, all[i].worker, late))
			}
		}
	}
	return faults
}

// timeline draws one row per worker: # while it held the lock, x while it held
// it and never committed.
func timeline(all []hold, workers []string, from, to time.Time, width int) string {
	var b strings.Builder
	span := max(to.Sub(from), time.Millisecond)
	column := func(t time.Time) int { return min(max(int(int64(t.Sub(from))*int64(width)/int64(span)), 0), width-1) }
	for _, w := range workers {
		row := []byte(strings.Repeat(".", width))
		for _, h := range all {
			if h.worker != w {
				continue
			}
			mark := byte('x')
			if h.ended {
				mark = '#'
			}
			for i := column(h.from); i <= column(h.to); i++ {
				row[i] = mark
			}
		}
		fmt.Fprintf(&b, "  %-4s %s\n", w, row)
	}
	left, right := "0 s", fmt.Sprintf("%.1f s", span.Seconds())
	fmt.Fprintf(&b, "       %s%s%s\n", left, strings.Repeat(" ", max(1, width-len(left)-len(right))), right)
	return b.String()
}
