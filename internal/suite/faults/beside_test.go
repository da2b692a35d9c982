package faults_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
)

// A write that is late where other processes write so often that its answer tells nothing:
// its process looks at the item meanwhile, and knows soon. Where nobody else writes it
// sends not one request more.
func TestAWriteThatIsLateAmongOthers(t *testing.T) {
	t.Parallel()
	const way, late, others = 2 * time.Millisecond, time.Second, 20
	for name, c := range map[string]struct {
		nth    int  // write of mine is late
		answer bool // it arrives, but is not answered
		raced  bool // the others write
	}{
		"it arrives late":                    {nth: 3, raced: true},
		"it is applied, and its answer late": {nth: 3, raced: true, answer: true},
		"nobody races":                       {nth: 2, answer: true},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := fixture.NewWith(t, fixture.Key)
			rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
				count := fault.NewCounter(&rig.Mortal{Next: network, Latency: way})
				slow := rig.NewLate(rig.Client(rig.Over(count)), "UpdateItem", c.nth, func() { time.Sleep(late) })
				slow.Answer = c.answer
				mine := rig.Must(optimistic.New(f.Items(t, slow), optimistic.Config{}))(t)
				other := rig.Must(optimistic.New(f.Items(t, rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: way}))), optimistic.Config{}))(t)
				add := func() { rig.Must(other.Update(t.Context(), fixture.Key, fixture.AddOne))(t) }
				rig.Must(mine.Update(t.Context(), fixture.Key, fixture.AddOne))(t) // it knows now how long a write takes
				count.Reset()
				var racing sync.WaitGroup
				racing.Go(func() {
					<-slow.Sent
					for n := 0; c.raced && n < others; n++ {
						add()
					}
				})
				tries, began := 0, time.Now()
				rig.Must(mine.Update(t.Context(), fixture.Key, func(ctx context.Context, a *fixture.Account) error {
					if tries++; c.raced && tries == 1 {
						add()
					}
					return addOp("mine")(ctx, a)
				}))(t)
				if took := time.Since(began); c.raced && took > late/2 {
					t.Errorf("it took %v", took)
				}
				if reads := count.Count("GetItem"); !c.raced && reads != 1 {
					t.Errorf("%d reads where nobody races", reads)
				}
				if writes := count.Count("UpdateItem"); c.answer && writes != c.nth-1 {
					t.Errorf("%d writes, want %d", writes, c.nth-1)
				}
				racing.Wait()
				<-slow.Arrived
				if got := rig.Must(other.Get(t.Context(), fixture.Key))(t); len(got.Ops) != 1 {
					t.Errorf("it was applied %d times", len(got.Ops))
				}
			})
		})
	}
}

// A throttled write is sent again only while the item tells that it must be: eight writes
// of others hide that. No answer is late here, so nothing else looks.
func TestAThrottledWriteAmongOthers(t *testing.T) {
	t.Parallel()
	f, _ := fixture.NewWith(t, fixture.Key)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		add := func() { // of a process of its own, which keeps no ids of others in sight
			other := rig.Must(optimistic.New(f.Items(t, rig.Client(rig.Over(network))), optimistic.Config{}))(t)
			rig.Must(other.Update(t.Context(), fixture.Key, fixture.AddOne))(t)
		}
		throttled := 0
		mine := rig.Must(optimistic.New(f.Items(t, rig.Client(rig.Over(network), rig.Broken(func(op string, n int, _ []byte) fault.Kind {
			if op != "UpdateItem" || n < 3 || throttled == 2 {
				return fault.None
			}
			throttled++
			for range 6 {
				add()
			}
			return fault.Throttle
		}))), optimistic.Config{}))(t)
		for range 2 { // the first one learns that others write there, by its first try
			tries := 0
			rig.Must(mine.Update(t.Context(), fixture.Key, func(ctx context.Context, a *fixture.Account) error {
				if tries++; tries == 1 && a.Balance == 0 {
					add()
				}
				return fixture.AddOne(ctx, a)
			}))(t)
		}
		if got := rig.Must(mine.Get(t.Context(), fixture.Key))(t); throttled != 2 || got.Balance != 15 {
			t.Errorf("%+v after %d refusals", got, throttled)
		}
	})
}

// What a read shows too late, while others write, is read again instead of being written
// over in vain.
func TestAReadThatIsLateAmongOthers(t *testing.T) {
	t.Parallel()
	for _, raced := range []bool{true, false} { // others have written first before
		f, _ := fixture.NewWith(t, fixture.Key)
		rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
			count := fault.NewCounter(&rig.Mortal{Next: network, Latency: 2 * time.Millisecond})
			slow := &rig.Intercept{Client: rig.Client(rig.Over(count))}
			mine := rig.Must(optimistic.New(f.Items(t, slow), optimistic.Config{}))(t)
			other := rig.Must(optimistic.New(f.Items(t, rig.Client(rig.Over(network))), optimistic.Config{}))(t)
			add := func() { rig.Must(other.Update(t.Context(), fixture.Key, fixture.AddOne))(t) }
			tries := 0
			rig.Must(mine.Update(t.Context(), fixture.Key, func(ctx context.Context, a *fixture.Account) error {
				if tries++; raced && tries == 1 {
					add()
				}
				return fixture.AddOne(ctx, a)
			}))(t)
			late := false
			slow.Read = func(map[string]types.AttributeValue) {
				if !late {
					late = true
					add()
					time.Sleep(time.Second)
				}
			}
			count.Reset()
			rig.Must(mine.Update(t.Context(), fixture.Key, addOp("mine")))(t)
			if reads, writes := count.Count("GetItem"), count.Count("UpdateItem"); raced && (reads != 2 || writes != 1) || !raced && (reads != 1 || writes != 2) {
				t.Errorf("raced before: %v: %d reads and %d writes", raced, reads, writes)
			}
		})
	}
}
