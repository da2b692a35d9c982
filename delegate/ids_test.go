package delegate_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// All commands of a round have ids of their own, more than the item has room for, and the
// first writes that would carry them are lost: each is applied once in the end, however
// often it comes, and the item stays small.
func TestIDsOfCommandsAtAnyRate(t *testing.T) {
	t.Parallel()
	const each, rounds = 80, 3
	b := rig.New(t)
	p := open(t, b)
	rig.Must(p.items.Create(t.Context(), product{Shop: "s", ID: "apple", Stock: each * rounds}))(t)
	all := func(round int, want error) {
		var calls sync.WaitGroup
		for i := range each {
			calls.Go(func() {
				for known := true; ; {
					_, err := p.take.Once(fmt.Sprint(round, " ", i)).Do(t.Context(), apple, take{1})
					switch {
					case errors.Is(err, repo.ErrOutcomeUnknown):
						known = false
						continue
					case errors.Is(err, delegate.ErrRepeated) && !known: // it was applied
					case !errors.Is(err, want):
						t.Errorf("round %d, %d: %v, want %v", round, i, err, want)
					}
					return
				}
			})
		}
		calls.Wait()
	}
	for round := range rounds {
		var lost atomic.Int64
		b.Faults(func(op string, _ int, body []byte) fault.Kind {
			if op == "UpdateItem" && len(body) > 64*16 && lost.Add(1) <= 20 {
				return fault.DropRequest
			}
			return fault.None
		})
		all(round, nil)
		if lost.Load() == 0 {
			t.Error("no write of a round was lost")
		}
	}
	b.Faults(nil)
	for round := range rounds {
		all(round, delegate.ErrRepeated)
	}
	if left := p.stock(t); left != 0 {
		t.Errorf("%d are left", left)
	}
}

// Consumers of a queue that delivers more than once: each message comes to several processes, twice
// to each, at the same time, while one of them leads and answers are lost. Each is applied
// once, and whoever has asked is told so in the end.
func TestMessagesThatComeToSeveralProcesses(t *testing.T) {
	b, first := withList(t)
	const processes, messages = 4, 12
	var told, again, asked atomic.Int64
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		var n atomic.Int64
		lossy := &rig.Mortal{Next: network, Latency: 2 * time.Millisecond, Lost: func(op, _ string) (before, after bool) {
			return false, op == "UpdateItem" && n.Add(1)%7 == 0
		}}
		var calls sync.WaitGroup
		for range processes {
			table := rig.Must(repo.NewTable[list](rig.Client(rig.Over(lossy)), b.Table, repo.TableConfig{AttemptTimeout: 50 * time.Millisecond}))(t)
			p := opened(t, table)
			for i := range 2 * messages {
				calls.Go(func() {
					op := fmt.Sprint(i%messages, ".")
					for {
						_, err := p.add.Once(op).Do(t.Context(), key, op)
						switch asked.Add(1); {
						case errors.Is(err, repo.ErrOutcomeUnknown):
							continue
						case errors.Is(err, delegate.ErrRepeated):
							again.Add(1)
						case err == nil:
							told.Add(1)
						}
						if repo.VerdictOf(err) != repo.Written {
							t.Errorf("%s: %v", op, err)
						}
						return
					}
				})
			}
			defer func() { rig.Is(t, p.all.Close(t.Context())) }()
		}
		calls.Wait()
	})
	got := rig.Must(first.items.Get(t.Context(), key))(t)
	seen := map[string]int{}
	for _, op := range got.Ops {
		seen[op]++
	}
	if len(got.Ops) != messages || len(seen) != messages || told.Load() > messages || told.Load()+again.Load() != 2*messages*processes {
		t.Errorf("%v; %d were told applied, %d before", got.Ops, told.Load(), again.Load())
	}
	t.Logf("%d calls, version %d", asked.Load(), got.Version)
}
