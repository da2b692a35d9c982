package jobs

import (
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
)

// Where clocks are changed each minute that comes has its tick, also one that comes twice, and
// none has another: at midnight, and by half an hour, too.
func TestTicksWhereClocksAreChanged(t *testing.T) {
	specs := map[string]func(time.Time) bool{
		"30 2 * * *":     func(at time.Time) bool { return at.Hour() == 2 && at.Minute() == 30 },
		"0 */3 * * *":    func(at time.Time) bool { return at.Hour()%3 == 0 && at.Minute() == 0 },
		"10 1 * * 0":     func(at time.Time) bool { return at.Weekday() == time.Sunday && at.Hour() == 1 && at.Minute() == 10 },
		"*/30 0 1-5 * *": func(at time.Time) bool { return at.Day() <= 5 && at.Hour() == 0 && at.Minute()%30 == 0 },
	}
	for _, name := range []string{"Europe/Berlin", "Asia/Beirut", "America/Havana", "Australia/Lord_Howe"} {
		zone := rig.Must(time.LoadLocation(name))(t)
		_, change := time.Date(2026, 1, 1, 0, 0, 0, 0, zone).ZoneBounds()
		for range 2 {
			for spec, comes := range specs {
				next := rig.Must(Cron("CRON_TZ=" + name + " " + spec))(t).next
				tick := next(change.Add(-48 * time.Hour))
				for at := change.Add(-48*time.Hour + time.Minute); at.Before(change.Add(48 * time.Hour)); at = at.Add(time.Minute) {
					if is := at.Equal(tick); is != comes(at) {
						t.Errorf("%s in %s: %v is a tick: %v", spec, name, at, is)
					}
					if !tick.After(at) {
						tick = next(at)
					}
				}
			}
			_, change = change.ZoneBounds()
		}
	}
}
