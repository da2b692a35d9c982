package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/suite/history"
	"github.com/dynahold/dynahold/repo"
)

const (
	historyClients = 5 // the checker's effort grows with them
	historyOps     = 8 // of each client

	// Of each strategy, where no flag asks for more.
	quickHistories, fullHistories = 1, 8
)

// tally counts over all histories.
type tally struct {
	mu        sync.Mutex
	histories int                     // guarded by mu
	faults    int                     // guarded by mu
	verdicts  map[history.Verdict]int // guarded by mu
}

func (c *tally) add(v history.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdicts[v]++
}

func (c *tally) String() string {
	n, operations := c.verdicts, 0
	for _, of := range n {
		operations += of
	}
	return fmt.Sprintf("%d histories, %d operations (%d ok, %d not found, %d exists, %d refused, %d unknown), %d faults",
		c.histories, operations, n[history.OK], n[history.NotFound], n[history.Exists], n[history.Refused], n[history.Unknown], c.faults)
}

// TestFaultedHistoriesAreLinearizable: whatever a few clients do to one item
// over a network that breaks a quarter of the requests, there is one order of
// their operations that explains every answer they got.
func TestFaultedHistoriesAreLinearizable(t *testing.T) {
	for name, how := range map[string]lives{
		"items that stay":        {spared: func(fault.Kind, []byte) bool { return false }},
		"items that come and go": {deletes: true, spared: untellable},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); historiesOfAll(t, how) })
	}
}

// lives says what becomes of the items of a test.
type lives struct {
	deletes bool
	spared  func(fault.Kind, []byte) bool // faults that stay out, see untellable
}

// untellable are the faults that a deletion makes impossible to judge, because
// it takes the evidence away: docs/protocol.md, "Creation, and its limit".
//
// A copy of a creating request can bring a deleted item back: one that comes
// late, and as well the library's own repeat after an answer was lost. The late
// copy of a stub can bring a hold back, whose commit is then applied again. A
// request that is delivered twice in one attempt shows its second answer only,
// and the library takes that for the first.
func untellable(kind fault.Kind, body []byte) bool {
	switch kind {
	case fault.Resend:
		return true
	case fault.LateDuplicate:
		return creates(body)
	case fault.LoseResponse, fault.CutResponse, fault.Truncate, fault.Error500After, fault.EmptyAfter:
		return creates(body) && !strings.Contains(string(body), "#lockStub = :true")
	}
	return false
}

// creates reports whether a request can bring an item into being.
func creates(body []byte) bool {
	var in struct {
		ConditionExpression      string
		ExpressionAttributeNames map[string]string
	}
	_ = json.Unmarshal(body, &in) // a body that is none has no condition
	for placeholder, name := range in.ExpressionAttributeNames {
		if name == "id" && strings.Contains(in.ConditionExpression, "attribute_not_exists("+placeholder+")") {
			return true
		}
	}
	return false
}

func historiesOfAll(t *testing.T, how lives) {
	base := fixture.Seed(t)
	all := faultStrategies()
	sum := &tally{verdicts: map[history.Verdict]int{}}
	for _, s := range append(all, fixture.Strategy{Name: "all mixed"}) {
		t.Run(s.Name, func(t *testing.T) {
			w, mine := fixture.New(t), []fixture.Strategy{s}
			if s.Open == nil {
				mine = all
			}
			// Histories run side by side: one that waits for the end of a lease
			// does not hold up the others.
			free := make(chan struct{}, 16)
			var running sync.WaitGroup
			for round := range max(rig.Share(quickHistories, fullHistories), *roundsFlag) {
				free <- struct{}{}
				h := newItemHistory(t, w, mine, how, base+uint64(round), sum)
				running.Go(func() {
					defer func() { <-free }()
					h.run(t)
				})
			}
			running.Wait()
		})
	}
	t.Log(sum)
}

// itemHistory is what a few clients do to one item.
type itemHistory struct {
	how     lives
	seed    uint64
	key     repo.Key
	item    fixture.Account // nothing but its key
	clients []historyClient
	plain   *repo.Table[fixture.Account] // without faults
	rec     *history.Recorder
	events  atomic.Int64 // the last event time; also numbers the operations
	sum     *tally
}

type historyClient struct {
	r  repo.Repository[fixture.Account]
	in *fault.Injector
}

func newItemHistory(t *testing.T, w *fixture.Fixture, strategies []fixture.Strategy, how lives, seed uint64, sum *tally) *itemHistory {
	t.Helper()
	h := &itemHistory{how: how, seed: seed, sum: sum, rec: history.NewRecorder(), plain: w.Items(t, w.Client)}
	h.item = fixture.Account{ID: fmt.Sprint(seed), Seq: 1}
	h.key = h.plain.KeyOf(h.item)
	for i := range historyClients {
		client, in := h.client(seed*historyClients + uint64(i))
		s := strategies[(i+int(seed%7))%len(strategies)]
		h.clients = append(h.clients, historyClient{s.Open(t, w, client), in})
	}
	return h
}

func (h *itemHistory) run(t *testing.T) {
	var done sync.WaitGroup
	for i, c := range h.clients {
		rng := rand.New(rand.NewPCG(h.seed, uint64(i))) // repeatable on purpose
		done.Go(func() {
			for range historyOps {
				h.operate(t, i, c.r, rng.IntN(10))
			}
		})
	}
	done.Wait()
	for _, c := range h.clients {
		c.in.Wait()
	}
	// What is left when nothing is on its way any more is a part of the history.
	h.record(len(h.clients), history.Get, h.get(t, h.plain))

	h.sum.mu.Lock()
	h.sum.histories++
	for _, c := range h.clients {
		h.sum.faults += c.in.Faulted()
	}
	h.sum.mu.Unlock()
	if h.rec.Check(time.Minute) != nil {
		t.Errorf("repeat with -seed=%d -rounds=1, as far as the order of the requests allows", h.seed)
		h.rec.Verify(t, time.Minute) // draws it
	}
}

// client breaks a quarter of its requests, but for the faults that are spared.
func (h *itemHistory) client(seed uint64) (*dynamodb.Client, *fault.Injector) {
	rng := rand.New(rand.NewPCG(seed, 2)) // repeatable on purpose
	kinds := fault.AllKinds()
	var in *fault.Injector
	client := rig.Client(func(o *dynamodb.Options) {
		in = fault.New(o.HTTPClient, fault.Config{Seed: seed, Script: func(_ string, _ int, body []byte) fault.Kind {
			hit, kind := rng.IntN(4) == 0, kinds[rng.IntN(len(kinds))]
			if !hit || h.how.spared(kind, body) {
				return fault.None
			}
			return kind
		}})
		o.HTTPClient = in
	})
	return client, in
}

// operate does one operation chosen by n, from 0 to 9.
func (h *itemHistory) operate(t *testing.T, client int, r repo.Repository[fixture.Account], n int) {
	switch n {
	case 0, 1:
		h.record(client, history.Get, h.get(t, r))
	case 2, 3:
		h.record(client, history.Create, func() (history.Result, error) {
			item := h.item
			item.At = h.events.Add(1)
			item.Balance = history.Append(0, item.At)
			made, err := r.Create(t.Context(), item)
			h.compare(t, err, made.Balance, item.Balance)
			return history.Result{New: history.Present(item.Balance)}, err
		})
	case 4:
		if !h.how.deletes {
			return
		}
		h.record(client, history.Delete, func() (history.Result, error) {
			return history.Result{}, r.Delete(t.Context(), h.key)
		})
	case 5:
		h.record(client, history.Upsert, h.edit(t, r.Upsert))
	default:
		h.record(client, history.Update, h.edit(t, r.Update))
	}
}

func (h *itemHistory) get(t *testing.T, from interface {
	Get(context.Context, repo.Key) (fixture.Account, error)
}) func() (history.Result, error) {
	return func() (history.Result, error) {
		got, err := from.Get(t.Context(), h.key)
		return history.Result{Old: history.Present(got.Balance)}, err
	}
}

// edit appends a number to the list that the balance stands for.
func (h *itemHistory) edit(t *testing.T, how func(context.Context, repo.Key, func(context.Context, *fixture.Account) error) (fixture.Account, error)) func() (history.Result, error) {
	return func() (history.Result, error) {
		var res history.Result
		entry := h.events.Add(1)
		after, err := how(t.Context(), h.key, func(_ context.Context, a *fixture.Account) error {
			res.Old = history.State{}
			if a.At > 0 {
				res.Old = history.Present(a.Balance)
			} else {
				a.At = h.events.Add(1) // a new item, and thus a new event
			}
			a.Balance = history.Append(a.Balance, entry)
			res.New = history.Present(a.Balance)
			return nil
		})
		h.compare(t, err, after.Balance, res.New.Value)
		return res, err
	}
}

// compare checks what an acknowledged write returned.
func (h *itemHistory) compare(t *testing.T, err error, got, want int64) {
	if err == nil && got != want {
		t.Errorf("history %d: wrote %d and was told %d", h.seed, want, got)
	}
}

func (h *itemHistory) record(client int, kind history.Kind, operation func() (history.Result, error)) {
	done := h.rec.Begin(client, kind)
	res, err := operation()
	res.Verdict = verdictOf(kind, err)
	done(res)
	h.sum.add(res.Verdict)
}

// verdictOf takes every error at its word: what is not called unknown has
// certainly had no effect.
func verdictOf(kind history.Kind, err error) history.Verdict {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, repo.ErrOutcomeUnknown):
		return history.Unknown
	case errors.Is(err, repo.ErrNotFound):
		return history.NotFound
	case errors.Is(err, repo.ErrExists):
		return history.Exists
	case kind == history.Get:
		return history.Unknown // a read without an answer says nothing
	}
	return history.Refused
}
