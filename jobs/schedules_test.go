package jobs_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
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

// A schedule that no program has is forgotten, once, also where answers are lost; one that
// some program has comes again.
func TestSchedulesAreForgotten(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Poll: time.Millisecond})
	for name, want := range map[string]error{"": repo.ErrKey, "report": repo.ErrNotFound} {
		rig.Is(t, s.ForgetSchedule(t.Context(), name), want)
	}
	listed := func() (names []string) {
		for s, err := range s.Schedules(t.Context()) {
			rig.Is(t, err)
			names = append(names, s.Name)
		}
		return names
	}
	for i, kind := range []fault.Kind{fault.None, fault.LoseResponse, fault.Resend, fault.Error500After} {
		b.put(t, attrs{"pk": str("SCHEDULES"), "sk": str("report"), "spec": str("every 1h0m0s"), "next": num("1")})
		b.Nth("DeleteItem", 0, kind)
		if err := s.ForgetSchedule(t.Context(), "report"); err != nil || len(listed()) != 0 {
			t.Errorf("%d: %v, %q", i, err, listed())
		}
		b.Faults(nil)
	}
	b.put(t, attrs{"pk": str("SCHEDULES"), "sk": str("report"), "spec": str("every 1h0m0s"), "next": num("1")})
	b.Faults(func(op string, _ int, _ []byte) fault.Kind {
		return map[bool]fault.Kind{true: fault.LoseResponse}[op == "DeleteItem"]
	})
	rig.Is(t, s.ForgetSchedule(t.Context(), "report"), repo.ErrOutcomeUnknown)
	b.Faults(nil)
	k := &ticks{seen: map[int64]int{}}
	end := k.periodically(t, s, jobs.Every(time.Hour))
	rig.Await(t, "the schedule is there", func() bool { return len(listed()) == 1 })
	end()
	other := bench{b.Peer()}
	moved := 1
	for kind, want := range map[fault.Kind]error{fault.None: jobs.ErrBusy, fault.LoseResponse: repo.ErrOutcomeUnknown, fault.Throttle: repo.ErrOutcomeUnknown} {
		b.Faults(func(op string, _ int, _ []byte) (befalls fault.Kind) {
			if op == "DeleteItem" {
				if befalls, kind = kind, fault.None; befalls == fault.None { // it moves on meanwhile, or was made anew
					moved++
					other.put(t, attrs{"pk": str("SCHEDULES"), "sk": str("report"), "spec": str("every 1h0m0s"), "next": num(strconv.Itoa(moved))})
				}
			}
			return befalls
		})
		rig.Is(t, s.ForgetSchedule(t.Context(), "report"), want)
	}
}
