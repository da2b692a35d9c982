package jobs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// What is told of schedules is what the dispatchers have done, also when they have ended;
// one that cannot be read hides no other.
func TestSchedulesAreListed(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		reader := f.open(t, jobs.Config{})
		for s, err := range reader.Schedules(t.Context()) {
			t.Errorf("%+v, %v before any ran", s, err)
		}
		k := &ticks{seen: map[int64]int{}}
		s, _ := f.process(t, jobs.Config{})
		schedule := rig.Must(jobs.Cron("* * * * *"))(t)
		next := time.Now().Truncate(time.Minute).Add(2 * time.Minute)
		time.Sleep(time.Until(next.Add(-50 * time.Second)))
		end := k.periodically(t, s, schedule)
		time.Sleep(20 * time.Second)
		for s, err := range reader.Schedules(t.Context()) {
			if rig.Is(t, err); s.Name != "report" || s.Spec != schedule.String() || !s.Next.Equal(next) || !s.Last.IsZero() {
				t.Errorf("%+v, want %v with the next tick at %v", s, schedule, next)
			}
		}
		time.Sleep(5 * time.Minute)
		end()
		last := int64(0)
		for tick := range k.seen {
			last = max(last, tick)
		}
		f.put(t, attrs{"pk": str("SCHEDULES"), "sk": str("broken"), "next": str("soon")})
		names := []string{}
		for s, err := range reader.Schedules(t.Context()) {
			names = append(names, s.Name)
			if s.Name == "broken" {
				rig.Is(t, err, repo.ErrSchema)
				continue
			}
			rig.Is(t, err)
			if s.Last.Unix() != last || s.Next.Unix() != last+60 {
				t.Errorf("%+v, the last tick with a job was %d", s, last)
			}
		}
		if !slices.Equal(names, []string{"broken", "report"}) {
			t.Errorf("%q", names)
		}
	})
}
