package lockedread_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// bridge sends requests from a bubble of virtual time to the real engine. The
// connection's goroutines live outside the bubble, where they would freeze its
// clock, and while a caller waits for an answer virtual time stands still.
type bridge struct{ lines chan line }

type line struct {
	ask    chan *http.Request
	answer chan answered
}

type answered struct {
	resp *http.Response
	err  error
}

// newBridge must be called outside the bubble.
func newBridge(next fault.Doer, lines int) *bridge {
	b := &bridge{lines: make(chan line, lines)}
	for range lines {
		l := line{make(chan *http.Request), make(chan answered)}
		go func() {
			for req := range l.ask {
				resp, err := next.Do(req)
				if err == nil { // read here: a body reads from the connection
					var body []byte
					body, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					resp.Body = io.NopCloser(bytes.NewReader(body))
				}
				l.answer <- answered{resp, err}
			}
		}()
		b.lines <- l
	}
	return b
}

// Do implements the SDK's HTTP client. The engine answers in real time, so the
// request runs on a context of its own: a virtual deadline cannot end it.
func (b *bridge) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	outside := req.Clone(context.Background())
	outside.Body = io.NopCloser(bytes.NewReader(body))
	l := <-b.lines
	l.ask <- outside
	a := <-l.answer
	b.lines <- l
	return a.resp, a.err
}

func (b *bridge) close() {
	for range cap(b.lines) {
		l := <-b.lines
		close(l.ask)
	}
}

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
			seed := rand.Uint64()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			})
			b := newBench(t)
			var doer fault.Doer
			rig.Client(func(o *dynamodb.Options) { doer = o.HTTPClient })
			bridge := newBridge(doer, len(actors)*2)
			defer bridge.close()
			exclusive := name != "beyond the allowance"
			synctest.Test(t, func(t *testing.T) { live(t, b, bridge, actors, seed, span, exclusive) })
		})
	}
}

// live lets actors change the item until virtual time is up.
func live(t *testing.T, b bench, bridge *bridge, actors []actor, seed uint64, span time.Duration, exclusive bool) {
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
		l := virtualLocker(t, b, bridge, who, seed+uint64(i))
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
	checkJournal(t, virtualTable(t, b, bridge), verdicts)
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

func virtualLocker(t *testing.T, b bench, bridge *bridge, who actor, seed uint64) *lockedread.Locker[journal] {
	client := rig.Client(func(o *dynamodb.Options) {
		o.HTTPClient = fault.New(bridge, fault.Config{Seed: seed, Rate: 0.2, MaxDelay: 3 * time.Second, Kinds: []fault.Kind{
			fault.DropRequest, fault.LoseResponse, fault.Resend, fault.Delay, fault.DelayResponse, fault.Error500After, fault.Throttle, fault.Refuse}})
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) { so.MaxAttempts = 6; so.RateLimiter = ratelimit.None })
	})
	table := rig.Must(repo.NewTable[journal](client, b.Table, repo.TableConfig{}))(t)
	l := rig.Must(lockedread.New(table, lockedread.Config{Lease: 30 * time.Second, Renew: seed%2 == 0, Clockless: who.clockless, ClockSkew: 10 * time.Second, Owner: who.name, Fair: who.fair}))(t)
	l.SetClock(who.skew)
	return l
}

// virtualTable reads without faults, through the bridge as well.
func virtualTable(t *testing.T, b bench, bridge *bridge) *repo.Table[journal] {
	client := rig.Client(func(o *dynamodb.Options) { o.HTTPClient = bridge })
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
