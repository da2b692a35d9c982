package txn_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// process is a client of its own, whose requests are broken at random. Its leases
// are short: a late copy of a request leaves a lock that only its lease ends.
func (w *world) process(t *testing.T, seed uint64, rate float64) *world {
	t.Helper()
	p := openLeased(t, w.Peer(), false, shortLease)
	rng := rand.New(rand.NewPCG(seed, 7)) // repeatable on purpose; the injector calls one by one
	all := fault.AllKinds()
	p.Faults(func(string, int, []byte) fault.Kind {
		if rng.Float64() >= rate {
			return fault.None
		}
		return all[rng.IntN(len(all))]
	})
	return p
}

// place is an item of a history.
type place struct{ kind, id string }

// Transactions of several processes over items of every strategy, and single changes
// beside them, with every kind of fault: their history is that of one after the
// other.
func TestHistory(t *testing.T) {
	processes, rounds := 4, rig.Share(8, 100)
	seed := fixture.Seed(t)
	w := newWorld(t)
	var places []place
	logs := map[string][]string{}
	for _, kind := range kinds {
		for n := range 2 {
			p := place{kind, w.id(fmt.Sprint("item ", n))}
			places = append(places, p)
			rig.Is(t, w.stores[kind].create(t.Context(), p.id, 0))
		}
	}
	var mu sync.Mutex
	var history []record // guarded by mu
	var all sync.WaitGroup
	for n := range processes {
		all.Go(func() {
			p := w.process(t, seed+uint64(n), 0.1)
			rng := rand.New(rand.NewPCG(seed+uint64(n), 8))
			for i := range rounds {
				r := p.step(t, rng, fmt.Sprintf("%d.%d", n, i), places)
				mu.Lock()
				history = append(history, r)
				mu.Unlock()
			}
			p.Faults(nil)
			p.Net.Wait()
		})
	}
	all.Wait()
	for _, p := range places {
		log, err := w.stores[p.kind].log(t.Context(), p.id)
		rig.Is(t, err)
		logs[p.kind+" "+p.id] = log
	}
	unknown, failed := 0, 0
	for i, r := range history {
		if r.unknown {
			unknown++
		}
		if r.name == "" {
			failed++
			history[i].name = fmt.Sprint("failed ", i)
		}
	}
	if found := violation(history, logs); found != "" {
		t.Error(found)
	}
	t.Logf("%d transactions, %d failed, %d unknown", len(history), failed, unknown)
	if failed+unknown > len(history)/2 {
		t.Error("hardly anything was applied: the history shows nothing")
	}
}

// step runs a transaction, or a single change, and records it. One that failed for
// certain has no name, and nothing that it saw counts.
func (w *world) step(t *testing.T, rng *rand.Rand, name string, places []place) record {
	// The place of a writer by version in a queue is one of 30 s, and a late copy may take it.
	ctx, cancel := context.WithTimeout(t.Context(), 2*rig.Patience)
	defer cancel()
	picked := rng.Perm(len(places))[:1+rng.IntN(3)]
	writes := make([]bool, len(picked))
	for i := range writes {
		writes[i] = rng.IntN(3) > 0
	}
	prefetch, single := rng.IntN(3) == 0, len(picked) == 1 && rng.IntN(2) == 0
	r := record{name: name, began: time.Now()}
	var err error
	if single {
		p := places[picked[0]]
		r.wrote = []string{p.kind + " " + p.id}
		err = w.stores[p.kind].write(ctx, p.id, name)
	} else {
		err = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			r.saw, r.wrote = map[string][]string{}, nil
			if prefetch {
				var keys []txn.Keys
				for _, at := range picked {
					keys = append(keys, w.stores[places[at].kind].keys(places[at].id))
				}
				if err := tx.Prefetch(ctx, keys...); err != nil {
					return err
				}
			}
			for i, at := range picked {
				p := places[at]
				s := w.stores[p.kind].in(tx)
				log, err := s.log(ctx, p.id)
				if err != nil {
					return err
				}
				r.saw[p.kind+" "+p.id] = log
				if !writes[i] {
					continue
				}
				if err := s.write(ctx, p.id, name); err != nil {
					return err
				}
				r.wrote = append(r.wrote, p.kind+" "+p.id)
			}
			return nil
		})
	}
	r.end = time.Now()
	r.unknown = errors.Is(err, repo.ErrOutcomeUnknown)
	if err != nil && !r.unknown {
		if ctx.Err() != nil {
			t.Errorf("%s did not come to an end: %v", name, err)
		}
		return record{began: r.began, end: r.end}
	}
	if r.unknown && len(r.wrote) == 0 {
		return record{began: r.began, end: r.end}
	}
	r.saw = maps.Clone(r.saw)
	return r
}
