package timeline

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

//go:embed page.html.tmpl
var pageSource string

var pageTemplate = template.Must(template.New("timeline").Parse(pageSource))

// page is a timeline as the template draws it. Places are in percent of the width.
type page struct {
	Title   string
	Counts  string
	Notes   []string
	Trouble []trouble
	More    int // that are not among Trouble
	Ticks   []tick
	Tables  []section
	Dated   bool // times are of several days
	Version string
}

// trouble is a hold that did not end by itself, told at the top.
type trouble struct {
	Lock, Says string
	Row        int
}

type tick struct {
	At   float64
	Text string
}

type section struct {
	Name string
	Gaps []bar
	Rows []row
}

type row struct {
	ID    int
	Name  string
	Says  string // how many holds, and what became of them
	Bad   bool
	Bars  []bar
	Holds []line
}

// bar is a hold: it may have been from At on for Wide, and was for certain from Sure on,
// in percent of the bar. Or it is a time in which nobody looked.
type bar struct {
	At, Wide          float64
	Sure, SureWide    float64
	Overdue, LateWide float64
	Class             string
	Text, Title       string
}

// line is a hold in words.
type line struct {
	Holder, Since, First, Last, For, End, Payload string
	Token                                         int64
	Bad                                           bool
}

// Holds that stand at the top, and the narrowest label.
const (
	maxTrouble   = 50
	charPercent  = 0.85 // of the width that a character needs, on a window of usual width
	fewestLetter = 3
)

// HTML writes a page that stands by itself: no script, and nothing that is loaded from
// elsewhere. It is well-formed XML too.
func (t Timeline) HTML(w io.Writer, version string) error {
	t = t.visible()
	p := page{Notes: t.Notes(), Dated: !sameDay(t.From, t.To), Version: version}
	p.Title = clock(t.From, true) + " to " + clock(t.To, p.Dated) + " UTC"
	p.Ticks = t.ticks(p.Dated)
	holds, bad := 0, 0
	for id, l := range t.Locks {
		if n := len(p.Tables); n == 0 || p.Tables[n-1].Name != l.Table {
			p.Tables = append(p.Tables, section{Name: l.Table, Gaps: t.gaps(l.Table, p.Dated)})
		}
		r := row{ID: id, Name: strings.TrimSpace(l.Name + " " + l.Sort)}
		lost := 0
		for i, h := range l.Holds {
			r.Bars = append(r.Bars, t.bar(h, i, p.Dated))
			r.Holds = append(r.Holds, lineOf(h, p.Dated))
			if !h.End.Bad() {
				continue
			}
			lost++
			if len(p.Trouble) < maxTrouble {
				p.Trouble = append(p.Trouble, trouble{t.label(l), fmt.Sprintf("%s, token %d, seen until %s: %s", h.Who(), h.Token, clock(h.Last, p.Dated), h.Ending()), r.ID})
			}
		}
		holds, bad = holds+len(l.Holds), bad+lost
		r.Bad = lost > 0
		r.Says = plural(len(l.Holds), "hold", "holds")
		if lost > 0 {
			r.Says += fmt.Sprintf(", %d lost or overdue", lost)
		}
		last := &p.Tables[len(p.Tables)-1]
		last.Rows = append(last.Rows, r)
	}
	p.More = bad - len(p.Trouble)
	p.Counts = fmt.Sprintf("%s, %s; %d of them lost or overdue", plural(len(t.Locks), "lock", "locks"), plural(holds, "hold", "holds"), bad)
	return pageTemplate.Execute(w, p)
}

func sameDay(a, b time.Time) bool {
	return a.UTC().Format(time.DateOnly) == b.UTC().Format(time.DateOnly)
}

// place is where a time stands.
func (t Timeline) place(at time.Time) float64 {
	all := t.To.Sub(t.From)
	if all <= 0 {
		return 0
	}
	return min(max(0, 100*float64(at.Sub(t.From))/float64(all)), 100)
}

func (t Timeline) bar(h Hold, n int, dated bool) bar {
	from, to := h.First, h.Last
	if h.Absent != nil {
		from = *h.Absent
	}
	if h.Gone != nil {
		to = *h.Gone
	}
	b := bar{At: t.place(from), Class: "hold"}
	b.Wide = t.place(to) - b.At
	inside := func(at time.Time) float64 {
		if b.Wide == 0 {
			return 0
		}
		return 100 * (t.place(at) - b.At) / b.Wide
	}
	b.Sure = inside(h.First)
	b.SureWide = inside(h.Last) - b.Sure
	if b.Wide == 0 {
		b.SureWide = 100
	}
	if h.Overdue != nil {
		b.Overdue = inside(*h.Overdue)
		b.LateWide = inside(h.Last) - b.Overdue
		b.Class += " late"
	}
	if n%2 == 1 {
		b.Class += " odd"
	}
	if h.End.Bad() {
		b.Class += " bad"
	}
	if h.Absent == nil {
		b.Class += " before"
	}
	if h.Gone == nil {
		b.Class += " on"
	}
	if letters := int(b.Wide * b.SureWide / 100 / charPercent); len(h.Who()) <= letters {
		b.Text = h.Who()
	}
	l := lineOf(h, dated)
	b.Title = fmt.Sprintf("%s, token %d\nfirst seen %s\nlast seen %s\nfor %s\n%s", l.Holder, l.Token, l.First, l.Last, l.For, l.End)
	return b
}

func lineOf(h Hold, dated bool) line {
	l := line{Holder: h.Who(), Token: h.Token, For: h.Lasted(), End: h.Ending(), Payload: h.Payload, Bad: h.End.Bad(), Since: "not known"}
	l.First, l.Last = clock(h.First, dated), clock(h.Last, dated)
	if h.Absent == nil {
		l.First += ", the first look"
	} else {
		l.First += ", not yet at " + clock(*h.Absent, dated)
	}
	if h.Gone == nil {
		l.Last += ", the last look"
	} else {
		l.Last += ", gone at " + clock(*h.Gone, dated)
	}
	if h.Since != nil {
		l.Since = clock(*h.Since, dated || !sameDay(*h.Since, h.First))
	}
	return l
}

// gaps are the times in which nobody looked at a table.
func (t Timeline) gaps(table string, dated bool) (bars []bar) {
	add := func(from, to time.Time) {
		if to.After(from) {
			bars = append(bars, bar{At: t.place(from), Wide: t.place(to) - t.place(from), Title: fmt.Sprintf("nobody looked from %s to %s", clock(from, dated), clock(to, dated))})
		}
	}
	for _, one := range t.Tables {
		if one.Name != table {
			continue
		}
		add(t.From, one.Watched[0].From)
		for _, gap := range one.Unwatched() {
			add(gap.From, gap.To)
		}
		add(one.Watched[len(one.Watched)-1].To, t.To)
	}
	return bars
}

// steps between two marks of the axis.
var steps = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour,
}

const mostTicks = 9

func (t Timeline) ticks(dated bool) (ticks []tick) {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if t.To.Sub(t.From)/s < mostTicks {
			step = s
			break
		}
	}
	for step > 0 && t.To.Sub(t.From)/step >= mostTicks {
		step *= 2 // a record of years
	}
	form := "15:04:05"
	switch {
	case dated && step >= 24*time.Hour:
		form = "01-02"
	case dated:
		form = "01-02 15:04"
	case step < time.Second:
		form = "15:04:05.0"
	case step >= time.Minute:
		form = "15:04"
	}
	for at := t.From.UTC().Truncate(step).Add(step); !at.After(t.To); at = at.Add(step) {
		ticks = append(ticks, tick{t.place(at), at.Format(form)})
	}
	return ticks
}
