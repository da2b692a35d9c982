package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
)

// schedule is what a seed does to a sequence of requests, told by its counts.
func schedule(t *testing.T, s *server, cfg fault.Config, ops ...string) (kinds []fault.Kind) {
	t.Helper()
	in := fault.New(s.Client(), cfg)
	before := in.Counts()
	for i, op := range ops {
		s.call(t, in, op, fmt.Sprint(i))
		after := in.Counts()
		for k, n := range after {
			if n > before[k] {
				kinds = append(kinds, k)
			}
		}
		before = after
	}
	in.Wait()
	return kinds
}

func TestScheduleIsAFunctionOfTheSeed(t *testing.T) {
	s := newServer(t)
	ops := slices.Repeat([]string{"UpdateItem"}, 60)
	cfg := fault.Config{Seed: 1, Rate: 0.5, MaxDelay: time.Millisecond}
	first, again := schedule(t, s, cfg, ops...), schedule(t, s, cfg, ops...)
	if !slices.Equal(first, again) {
		t.Errorf("seed 1 gave\n%v, then\n%v", first, again)
	}
	if hit := len(ops) - len(slices.DeleteFunc(slices.Clone(first), func(k fault.Kind) bool { return k != fault.None })); hit < 15 || hit > 45 {
		t.Errorf("%d of %d requests hit at rate 0.5", hit, len(ops))
	}
	cfg.Seed = 2
	if other := schedule(t, s, cfg, ops...); slices.Equal(first, other) {
		t.Errorf("seeds 1 and 2 gave the same")
	}
}

func TestScheduleKeepsToItsKinds(t *testing.T) {
	s := newServer(t)
	cfg := fault.Config{Seed: 3, Rate: 1, Kinds: []fault.Kind{fault.Throttle, fault.DropRequest}}
	met := schedule(t, s, cfg, slices.Repeat([]string{"GetItem", "UpdateItem"}, 20)...)
	others := func(k fault.Kind) bool { return !slices.Contains(cfg.Kinds, k) }
	if slices.ContainsFunc(met, others) || !slices.Contains(met, fault.Throttle) || !slices.Contains(met, fault.DropRequest) {
		t.Errorf("requests met %v", met)
	}
}

func TestScriptDecides(t *testing.T) {
	s := newServer(t)
	type seen struct {
		op, body string
		n        int
	}
	var all []seen
	in := fault.New(s.Client(), fault.Config{Rate: 1, Script: func(op string, n int, body []byte) fault.Kind {
		all = append(all, seen{op, string(body), n})
		if n == 1 {
			return fault.Throttle
		}
		return fault.None
	}})
	for i, op := range []string{"GetItem", "UpdateItem", "DeleteItem"} {
		s.call(t, in, op, fmt.Sprint(i))
	}
	if want := []seen{{"GetItem", "0", 0}, {"UpdateItem", "1", 1}, {"DeleteItem", "2", 2}}; !slices.Equal(all, want) {
		t.Errorf("the script saw %v", all)
	}
	if !slices.Equal(s.bodies, []string{"0", "2"}) || in.Faulted() != 1 || in.Requests() != 3 {
		t.Errorf("delivered %v, counts %v", s.bodies, in.Counts())
	}
}

// What is called delivered reaches the engine although the caller is gone.
func TestDeliveryOutlivesTheCaller(t *testing.T) {
	for k, times := range map[fault.Kind]int{
		fault.LoseResponse: 1, fault.CutResponse: 1, fault.Truncate: 1, fault.Error500After: 1, fault.EmptyAfter: 1, fault.NoImage: 1,
		fault.DelayResponse: 1, fault.HoldResponse: 1, fault.Resend: 2, fault.LateDuplicate: 2,
	} {
		t.Run(k.String(), func(t *testing.T) {
			s := newServer(t)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			in := s.always(k)
			o := do(in, s.request(ctx, t, "UpdateItem", "body"))
			in.Wait()
			if n := s.delivered(); n != times {
				t.Errorf("delivered %d times: %v", n, o.err)
			}
		})
	}
}

// Whoever waits for late copies may do so while others send: renewals go on in the background.
func TestWaitBesideRequests(t *testing.T) {
	s := newServer(t)
	in := fault.New(s.Client(), fault.Config{MaxDelay: time.Millisecond, Script: func(string, int, []byte) fault.Kind { return fault.LateDuplicate }})
	var all sync.WaitGroup
	var over atomic.Bool
	all.Go(func() {
		for !over.Load() {
			in.Wait()
		}
	})
	for range 200 {
		s.call(t, in, "UpdateItem", "body")
	}
	over.Store(true)
	all.Wait()
	in.Wait()
	if n := s.delivered(); n != 400 {
		t.Errorf("delivered %d times, want 400", n)
	}
}

func TestDelaysEndWithTheContext(t *testing.T) {
	for k, delivered := range map[fault.Kind]int{fault.Delay: 0, fault.DelayResponse: 1} {
		t.Run(k.String(), func(t *testing.T) {
			s := newServer(t)
			in := fault.New(s.Client(), fault.Config{MaxDelay: time.Hour * 1e4, Script: func(string, int, []byte) fault.Kind { return k }})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			o := do(in, s.request(ctx, t, "UpdateItem", "body"))
			if !errors.Is(o.err, context.DeadlineExceeded) || s.delivered() != delivered {
				t.Errorf("delivered %d times, %v", s.delivered(), o.err)
			}
		})
	}
}

func TestInjectorInParallel(t *testing.T) {
	s := newServer(t)
	in := fault.New(s.Client(), fault.Config{Seed: 5, Rate: 0.5, MaxDelay: time.Millisecond})
	var done sync.WaitGroup
	for i := range 8 {
		done.Go(func() {
			for range 25 {
				s.call(t, in, "UpdateItem", fmt.Sprint(i))
			}
		})
	}
	done.Wait()
	in.Wait()
	total := 0
	for _, n := range in.Counts() {
		total += n
	}
	if total != 200 || in.Requests() != 200 || in.Faulted()+in.Counts()[fault.None] != 200 {
		t.Errorf("%d requests, %d faulted, %v", in.Requests(), in.Faulted(), in.Counts())
	}
}
