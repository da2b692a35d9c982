package timeline

import (
	"fmt"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
)

// AtLeast is how long the hold lasted for certain: from the first look that saw it to
// the last one.
func (h Hold) AtLeast() time.Duration { return h.Last.Sub(h.First) }

// AtMost is how long it may have lasted: between the looks that did not see it. 0 where
// no look tells.
func (h Hold) AtMost() time.Duration {
	if h.Absent == nil || h.Gone == nil {
		return 0
	}
	return h.Gone.Sub(*h.Absent)
}

// Lasted says how long in words.
func (h Hold) Lasted() string {
	least, most := short(h.AtLeast()), short(h.AtMost())
	switch {
	case h.AtMost() == 0 && h.AtLeast() == 0:
		return "seen once"
	case h.AtMost() == 0 || least == most:
		return least + " or more"
	case h.AtLeast() == 0:
		return "less than " + most
	}
	return least + " to " + most
}

// Ending says how it ended, in words.
func (h Hold) Ending() string {
	by := ""
	if h.Next != "" {
		by = ", then held by " + h.Next
	}
	switch h.End {
	case Open:
		return "held at the last look"
	case Expired:
		return "held at the last look, its lease over"
	case TakenOver:
		return "taken over after its lease" + by
	case Broken:
		return "broken before the end of its lease" + by
	case Lost:
		return "taken over or broken" + by
	}
	end := "given back or broken"
	if h.End == Released {
		end = "given back"
	}
	if h.Overdue != nil {
		end += ", after its lease"
	}
	return end
}

// Who is its holder in words.
func (h Hold) Who() string { return shown.Holder(h.Holder, h.Handed) }

// short is a length of time as people write it.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Second)
	}
	return d.String()
}

// clock is a time of day, with the date where that is not the day of others.
func clock(at time.Time, dated bool) string {
	if dated {
		return at.UTC().Format("2006-01-02 15:04:05")
	}
	return at.UTC().Format("15:04:05")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
