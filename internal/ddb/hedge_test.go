package ddb_test

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// scripted is a network that answers the nth request after a time, in its way.
type scripted struct {
	mu     sync.Mutex
	script []reply
	bodies [][]byte // guarded by mu
	ended  int      // guarded by mu: of those that nobody waits for any more
}

type reply struct {
	after  time.Duration
	status int
	text   string
}

var (
	yes       = reply{10 * time.Millisecond, http.StatusOK, `{"Attributes":{"id":{"S":"p"}}}`}
	no        = reply{10 * time.Millisecond, http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","Item":{"id":{"S":"p"}}}`}
	gone      = reply{10 * time.Millisecond, http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}`}
	broken    = reply{10 * time.Millisecond, http.StatusInternalServerError, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}`}
	ends      = reply{after: 10 * time.Millisecond} // its goroutine
	throttled = reply{10 * time.Millisecond, http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}`}
)

func (r reply) late() reply { r.after = time.Second; return r }

func (s *scripted) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	r := s.script[min(len(s.bodies), len(s.script))-1]
	s.mu.Unlock()
	select {
	case <-time.After(r.after):
	case <-req.Context().Done():
		s.mu.Lock()
		s.ended++
		s.mu.Unlock()
		return nil, req.Context().Err()
	}
	if r.status == 0 {
		runtime.Goexit()
	}
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"r"}}
	return &http.Response{StatusCode: r.status, Header: header, Body: io.NopCloser(strings.NewReader(r.text)), Request: req}, nil
}

// A write whose answer is late goes out once more, with the same bytes. Whichever answer
// comes first decides, and nothing is under way behind it.
func TestHedges(t *testing.T) {
	const after = 50 * time.Millisecond
	for name, c := range map[string]struct {
		script  []reply
		sent    int
		outcome ddb.Outcome
		clean   bool
		took    time.Duration
		ended   int
	}{
		"in time":                            {[]reply{yes}, 1, ddb.Applied, true, 10 * time.Millisecond, 0},
		"refused in time":                    {[]reply{no}, 1, ddb.Condition, true, 10 * time.Millisecond, 0},
		"the second is first":                {[]reply{yes.late(), yes}, 2, ddb.Applied, false, 60 * time.Millisecond, 1},
		"the second is refused by the first": {[]reply{yes.late(), no}, 2, ddb.Condition, false, 60 * time.Millisecond, 1},
		"the second finds no item":           {[]reply{{after * 3, yes.status, yes.text}, gone}, 2, ddb.Applied, true, after * 3, 0},
		"neither finds an item":              {[]reply{{after * 3, gone.status, gone.text}, gone}, 2, ddb.Condition, true, after * 3, 0},
		"the first is first":                 {[]reply{{after + after/2, yes.status, yes.text}, yes.late()}, 2, ddb.Applied, false, after + after/2, 1},
		"the second is throttled":            {[]reply{{after * 3, no.status, no.text}, throttled}, 2, ddb.Condition, true, after * 3, 0},
		"both are throttled":                 {[]reply{{after * 2, throttled.status, throttled.text}, throttled}, 2, ddb.Refused, true, after * 2, 0},
		"the second has failed":              {[]reply{{after * 3, no.status, no.text}, broken}, 2, ddb.Condition, false, after * 3, 0},
		"the first ends its goroutine":       {[]reply{ends}, 1, ddb.Unknown, false, 10 * time.Millisecond, 0},
		"both have failed":                   {[]reply{{after * 3, broken.status, broken.text}, broken}, 2, ddb.Unknown, false, after * 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := &scripted{script: c.script}
				s := table(1, net)
				began := time.Now()
				res := s.Update(t.Context(), (&bench{table: "t"}).add("p"), ddb.Options{Hedge: ddb.Hedge{After: after, Budget: new(ddb.Budget)}})
				if res.Outcome != c.outcome || res.Clean != c.clean || len(net.bodies) != c.sent || net.ended != c.ended || time.Since(began) != c.took {
					t.Errorf("%d requests, %d given up, outcome %v, clean %v after %v: %v", len(net.bodies), net.ended, res.Outcome, res.Clean, time.Since(began), res.Err)
				}
				if !bytes.Equal(net.bodies[0], net.bodies[len(net.bodies)-1]) {
					t.Errorf("not the same bytes:\n%s\n%s", net.bodies[0], net.bodies[1])
				}
			})
		})
	}
}

// Of the attempts of a call only the first has a hedge: the client's policy counts none.
func TestHedgesAreNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := throttled.late()
		net := &scripted{script: []reply{late, late, late, late, yes.late()}}
		res := table(4, net).Update(t.Context(), (&bench{table: "t"}).add("p"), ddb.Options{Hedge: ddb.Hedge{After: 50 * time.Millisecond, Budget: new(ddb.Budget)}})
		if res.Outcome != ddb.Applied || len(net.bodies) != 5 { // four attempts, and one more
			t.Errorf("%d requests, outcome %v: %v", len(net.bodies), res.Outcome, res.Err)
		}
	})
}

// A request that may be lost has others beside it, whatever the budget, each after twice as
// long, and what became of it is in doubt. Where one of them finds no item, the answers to
// the others are waited for, for a while.
func TestLostRequestsHaveOthersBesideThem(t *testing.T) {
	const lost, timeout = 50 * time.Millisecond, 10 * time.Second
	never := yes
	never.after = time.Hour
	for name, c := range map[string]struct {
		script  []reply
		timeout time.Duration
		sent    int
		outcome ddb.Outcome
		took    time.Duration
	}{
		"in time":                      {[]reply{yes}, timeout, 1, ddb.Applied, yes.after},
		"all are lost":                 {[]reply{never}, timeout, 8, ddb.Unknown, timeout}, // 50, 100, ... 6,400 ms between them
		"the time-out is shorter":      {[]reply{never}, lost / 2, 1, ddb.Unknown, lost / 2},
		"the third is answered":        {[]reply{never, never, yes}, timeout, 3, ddb.Applied, 3*lost + yes.after},
		"the first is answered late":   {[]reply{{2 * lost, yes.status, yes.text}, never}, timeout, 2, ddb.Applied, 2 * lost},
		"the second finds none":        {[]reply{{2 * lost, yes.status, yes.text}, gone}, timeout, 2, ddb.Applied, 2 * lost},
		"and the first is never heard": {[]reply{never, gone}, timeout, 2, ddb.Unknown, lost + gone.after + ddb.Settle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net, began := &scripted{script: c.script}, time.Now()
				res := table(1, net).Update(t.Context(), (&bench{table: "t"}).add("p"), ddb.Options{Single: true, Timeout: c.timeout, Hedge: ddb.Hedge{After: time.Hour, Budget: new(ddb.Budget), Lost: lost}})
				if res.Outcome != c.outcome || res.Clean && c.outcome == ddb.Unknown || len(net.bodies) != c.sent || time.Since(began) != c.took {
					t.Errorf("%d requests, outcome %v, clean %v after %v: %v", len(net.bodies), res.Outcome, res.Clean, time.Since(began), res.Err)
				}
			})
		})
	}
}

// Hedges are a fifth of the writes that could have one, and ten ahead of that.
func TestHedgesKeepToTheirBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := &scripted{script: []reply{yes.late()}}
		s, hedge := table(1, net), ddb.Hedge{After: 50 * time.Millisecond, Budget: new(ddb.Budget)}
		const writes = 200
		for range writes {
			if res := s.Update(t.Context(), (&bench{table: "t"}).add("p"), ddb.Options{Hedge: hedge}); res.Outcome != ddb.Applied {
				t.Fatal(res.Err)
			}
		}
		if n := len(net.bodies) - writes; n < writes/5 || n > writes/5+10 {
			t.Errorf("%d hedges for %d writes", n, writes)
		}
	})
}

// A caller that leaves is not waited for by either.
func TestHedgesEndWithTheirCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := &scripted{script: []reply{yes.late(), yes.late()}}
		ctx := callerWhoLeaves(t, 100*time.Millisecond)
		res := table(1, net).Update(ctx, (&bench{table: "t"}).add("p"), ddb.Options{NoGrace: true, Hedge: ddb.Hedge{After: 50 * time.Millisecond, Budget: new(ddb.Budget)}})
		if res.Outcome != ddb.Unknown || len(net.bodies) != 2 || net.ended != 2 {
			t.Errorf("%d requests, %d given up, outcome %v: %v", len(net.bodies), net.ended, res.Outcome, res.Err)
		}
	})
}
