package ticket_test

import (
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/ticket"
)

func TestFreeLockAndDoneAreTwoRequests(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	for range 2 { // a new item, and one that is there
		b.Count.Reset()
		turn := lock(t, q, "door")
		done(t, turn)
		if n := b.Count.Counts(); n["UpdateItem"] != 2 || b.Count.Total() != 2 {
			t.Errorf("requests %v, want two UpdateItem", n)
		}
	}
}

func TestEntriesAreShort(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	join(t, q, "door")
	one := protocol.Size(b.raw(t, "door"))
	const more = 50
	for range more {
		join(t, q, "door")
	}
	all := protocol.Size(b.raw(t, "door"))
	each := (all - one) / more
	t.Logf("an entry has about %d bytes, the rest of the item %d", each, one-each)
	if each > 48 {
		t.Errorf("an entry has %d bytes: every request on the item bills them", each)
	}
}

func TestCostOfALongLine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.queue(t, ticket.Config{Lease: 10 * time.Minute}) // renewals would be writes
	const waiters, turnTime = 50, 20 * time.Millisecond
	head := lock(t, q, "door")
	var waiting []*ticket.Ticket
	for range waiters {
		waiting = append(waiting, join(t, q, "door"))
	}
	b.Count.Reset()
	begun := time.Now()
	var (
		work  sync.WaitGroup
		mu    sync.Mutex
		stood time.Duration // guarded by mu: waiting, of all together
	)
	for _, k := range waiting {
		work.Go(func() {
			turn, err := k.Wait(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			stood += time.Since(begun)
			mu.Unlock()
			time.Sleep(turnTime) // the work
			done(t, turn)
		})
	}
	time.Sleep(500 * time.Millisecond) // the first turn is long
	done(t, head)
	work.Wait()
	took, reads, writes := time.Since(begun), b.Count.Count("GetItem"), b.Count.Count("UpdateItem")
	t.Logf("%d waiters, turns of %v, %v in all: %.1f reads and %.1f writes per waiter, %.1f requests per waiter and second of waiting, %v between turns",
		waiters, turnTime, took.Round(time.Millisecond), float64(reads)/waiters, float64(writes)/waiters,
		float64(reads+writes)/stood.Seconds(), ((took-500*time.Millisecond)/waiters - turnTime).Round(time.Millisecond/10))
	if writes != waiters+1 {
		t.Errorf("%d writes, want one for each turn", writes)
	}
	if most := waiters * 40; reads > most {
		t.Errorf("%d reads, want at most %d", reads, most)
	}
}
