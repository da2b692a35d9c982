package lockedread_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// actor is one client in virtual time, with its own idea of what time it is.
type actor struct {
	name      string
	clockless bool
	skew      time.Duration // its clock, against the others'
	fair      bool
}

// TestVirtualDays runs clients whose clocks differ, that pause in the middle of
// their holds for longer than a lease, under faults, for days of virtual time.
// Every verdict is compared with the item in the end.
func TestVirtualDays(t *testing.T) {
	t.Parallel()
	span := rig.Share(15*time.Minute, 3*time.Hour)
	if rig.Soaking() {
		span = 20 * 24 * time.Hour
	}
	for name, actors := range map[string][]actor{
		"clocks within the allowance": {{"a", false, 0, false}, {"b", false, 4 * time.Second, false}, {"c", false, -4 * time.Second, false}},
		"any clocks, nobody trusts":   {{"a", true, 0, false}, {"b", true, time.Hour, false}, {"c", true, -24 * time.Hour, false}},
		"beyond the allowance":        {{"a", false, 0, false}, {"b", false, 10 * time.Minute, false}, {"c", false, -10 * time.Minute, false}},
		"fair":                        {{"a", false, 0, true}, {"b", false, 4 * time.Second, true}, {"c", false, -4 * time.Second, true}},
		"fair, any clocks":            {{"a", true, 0, true}, {"b", true, time.Hour, true}, {"c", true, -24 * time.Hour, true}},
		"some are fair":               {{"a", false, 0, true}, {"b", false, 4 * time.Second, true}, {"c", false, -4 * time.Second, false}},
	} {
		t.Run(name, func(t *testing.T) {
			seed := fixture.Seed(t)
			b := newBench(t)
			exclusive := name != "beyond the allowance"
			rig.InVirtualTime(t, len(actors)*2, func(t *testing.T, network fault.Doer) { live(t, b, network, actors, seed, span, exclusive) })
			t.Logf("%d virtual hours", int(span.Hours()*float64(len(actors))))
		})
	}
}

// live lets actors change the item until virtual time is up.
func live(t *testing.T, b bench, network fault.Doer, actors []actor, seed uint64, span time.Duration, exclusive bool) {
	var mu sync.Mutex
	verdicts := map[string]error{}
	var inside string // who executes; guarded by mu
	began := time.Now()
	idle := 20 * time.Minute
	if actors[0].fair { // a queue wants to be waited in
		idle, span = 15*time.Second, min(span/12, 4*time.Hour)
	}
	var done sync.WaitGroup
	for i, who := range actors {
		rng := rand.New(rand.NewPCG(seed, uint64(i))) // repeatable on purpose
		l := virtualLocker(t, b, network, who, seed+uint64(i))
		done.Go(func() {
			for n := 0; time.Since(began) < span; n++ {
				time.Sleep(time.Duration(rng.Int64N(int64(idle))))
				id := who.name + strconv.Itoa(n)
				h, err := l.Acquire(t.Context(), journalKey)
				if err != nil {
					mu.Lock()
					verdicts[id] = err
					mu.Unlock()
					continue
				}
				mu.Lock()
				if exclusive && inside != "" {
					t.Errorf("%s executes beside %s", id, inside)
				}
				inside = id
				mu.Unlock()
				// What a holder does while it may; it stops at its deadline.
				work(h.Context(), rng)
				mu.Lock()
				inside = ""
				mu.Unlock()
				if rng.IntN(10) == 0 {
					time.Sleep(2 * time.Minute) // a long pause: suspended, or collecting garbage
				}
				item := h.Item()
				item.IDs = append(item.IDs, id)
				_, err = h.Commit(t.Context(), item)
				_ = h.Release(t.Context())
				mu.Lock()
				verdicts[id] = err
				mu.Unlock()
			}
		})
	}
	done.Wait()
	checkJournal(t, virtualTable(t, b, network), verdicts)
}

// work takes some seconds, at times much longer than a lease.
func work(held context.Context, rng *rand.Rand) {
	d := time.Duration(rng.Int64N(int64(20 * time.Second)))
	if rng.IntN(5) == 0 {
		d *= 10
	}
	select {
	case <-time.After(d):
	case <-held.Done():
	}
}

type journal struct {
	ID  string   `dynamodbav:"id" repo:"pk"`
	IDs []string `dynamodbav:"ids"`
}

var journalKey = repo.Key{Partition: "apple"}

func virtualLocker(t *testing.T, b bench, network fault.Doer, who actor, seed uint64) *lockedread.Locker[journal] {
	client := rig.Client(func(o *dynamodb.Options) {
		o.HTTPClient = fault.New(network, fault.Config{Seed: seed, Rate: 0.2, MaxDelay: 3 * time.Second, Kinds: []fault.Kind{
			fault.DropRequest, fault.LoseResponse, fault.Resend, fault.Delay, fault.DelayResponse, fault.Error500After, fault.Throttle, fault.Refuse}})
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) { so.MaxAttempts = 6; so.RateLimiter = ratelimit.None })
	})
	table := rig.Must(repo.NewTable[journal](client, b.Table, repo.TableConfig{}))(t)
	l := rig.Must(lockedread.New(table, lockedread.Config{Lease: 30 * time.Second, Renew: seed%2 == 0, Clockless: who.clockless, ClockSkew: 10 * time.Second, Owner: who.name, Fair: who.fair}))(t)
	l.SetClock(who.skew)
	return l
}

// virtualTable reads without faults, through the same network.
func virtualTable(t *testing.T, b bench, network fault.Doer) *repo.Table[journal] {
	client := rig.Client(rig.Over(network))
	return rig.Must(repo.NewTable[journal](client, b.Table, repo.TableConfig{}))(t)
}

func checkJournal(t *testing.T, table *repo.Table[journal], verdicts map[string]error) {
	stored := rig.Must(table.Get(t.Context(), journalKey))(t)
	times := map[string]int{}
	for _, id := range stored.IDs {
		times[id]++
	}
	count := map[string]int{}
	for id, err := range verdicts {
		n := times[id]
		switch {
		case n > 1, err == nil && n != 1, err != nil && n == 1 && !errors.Is(err, repo.ErrOutcomeUnknown):
			t.Errorf("%s is in the item %d times, its verdict was %v", id, n, err)
		}
		for _, s := range []error{repo.ErrLockExpired, repo.ErrLockLost, repo.ErrOutcomeUnknown, repo.ErrLocked} {
			if errors.Is(err, s) {
				count[s.Error()]++
			}
		}
		if err == nil {
			count["committed"]++
		}
	}
	t.Logf("%d changes: %v", len(verdicts), fmt.Sprint(count))
}
