package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/dynahold/dynahold/repo"
)

// Schedule is when a job comes again and again: see [Every] and [Cron].
type Schedule struct {
	spec    string
	next    func(time.Time) time.Time // the first tick behind a time; zero: there is none
	catchUp CatchUp
}

// CatchUp is what becomes of ticks that came while no Run was there to see them.
type CatchUp int

// What becomes of missed ticks.
const (
	CatchUpLast CatchUp = iota // the last of them is made up for
	CatchUpNone                // those more than a lease late are left out, the one behind them is next
	CatchUpAll                 // each is made up for, in order
)

// Every is a schedule whose ticks are the multiples of d since 1970, so that all processes
// agree about them. At least a second.
func Every(d time.Duration) Schedule {
	s := Schedule{spec: "every " + d.String()}
	if d >= time.Second {
		s.next = func(t time.Time) time.Time { return time.Unix(0, (t.UnixNano()/int64(d)+1)*int64(d)) }
	}
	return s
}

// Cron is a schedule of five fields, minute, hour, day of the month, month and day of the
// week, or one such as "@daily": what the parser of github.com/robfig/cron reads. Its times are
// those of UTC, or of the zone that "CRON_TZ=Europe/Berlin " in front says, of whose times one
// that is left out when clocks are put forward has no tick, and one that comes twice has two.
// ErrConfig if it cannot be read, or has no tick within five years.
func Cron(spec string) (Schedule, error) {
	if zone := strings.HasPrefix(spec, "TZ=") || strings.HasPrefix(spec, "CRON_TZ="); zone && !strings.Contains(spec, " ") {
		return Schedule{}, fmt.Errorf("%w: schedule %q has a zone, and no fields", repo.ErrConfig, spec) // the parser would panic
	}
	parsed, err := cron.ParseStandard(spec)
	if err != nil {
		return Schedule{}, fmt.Errorf("%w: schedule %q: %w", repo.ErrConfig, spec, err)
	}
	s := Schedule{spec: spec, next: func(t time.Time) time.Time { return behind(parsed, t) }}
	if s.next(time.Now()).IsZero() {
		return s, fmt.Errorf("%w: schedule %q never comes", repo.ErrConfig, spec)
	}
	return s, nil
}

// behind is the first tick behind a time. Each span of time in which the zone has one offset is
// asked by itself: where clocks are changed the parser's Next leaves out some ticks.
func behind(parsed cron.Schedule, t time.Time) time.Time {
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return parsed.Next(t.UTC())
	}
	zone := spec.Location
	if zone == time.Local { // none was given
		zone = time.UTC
	}
	for span := t.In(zone); ; {
		_, offset := span.Zone()
		_, end := span.ZoneBounds()
		alike := *spec
		alike.Location = time.FixedZone("", offset)
		if tick := alike.Next(t.UTC()); tick.IsZero() || end.IsZero() || tick.Before(end) {
			return tick
		}
		span, t = end, end.Add(-time.Second)
	}
}

// CatchUp is the schedule with another answer to missed ticks. Default: CatchUpLast.
func (s Schedule) CatchUp(c CatchUp) Schedule {
	s.catchUp = c
	return s
}

// String is what the schedule was made of.
func (s Schedule) String() string { return s.spec }

// due is the tick that is to be made up for now, where from is the first that was not, and
// the one behind it. grace is how late a tick may be that was not missed. None: nothing is
// to be made up for.
func (s Schedule) due(from, now time.Time, grace time.Duration) (tick, next time.Time, some bool) {
	tick, next = from, s.next(from)
	for s.catchUp != CatchUpAll && !next.IsZero() && !next.After(now) {
		tick, next = next, s.next(next)
	}
	return tick, next, s.catchUp != CatchUpNone || now.Sub(tick) <= grace
}
