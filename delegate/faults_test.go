package delegate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// list is an item that tells which operations were applied, and how often.
type list struct {
	Shop    string   `dynamodbav:"shop" repo:"pk"`
	ID      string   `dynamodbav:"id" repo:"sk"`
	Ops     []string `dynamodbav:"ops"`
	Others  int      `dynamodbav:"others"`
	Version int64    `dynamodbav:"version" repo:"version"`
}

// audit compares what callers were told with what the item says.
type audit struct {
	mu   sync.Mutex
	told map[string]error
	each chan struct{} // gets something now and then
}

func newAudit() *audit { return &audit{told: map[string]error{}, each: make(chan struct{}, 1)} }

func (a *audit) record(op string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told[op] = err
	if len(a.told)%8 == 0 {
		select {
		case a.each <- struct{}{}:
		default:
		}
	}
}

func (a *audit) check(t *testing.T, ops []string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	times := map[string]int{}
	for _, op := range ops {
		times[op]++
	}
	counts := map[string]int{}
	for op, err := range a.told {
		n := times[op]
		var refused *delegate.RefusedError
		switch {
		case err == nil:
			counts["applied"]++
			if n != 1 {
				t.Errorf("%s was applied, and is there %d times", op, n)
			}
		case errors.As(err, &refused):
			counts["refused"]++
			if n != 0 {
				t.Errorf("%s was refused, and is there %d times", op, n)
			}
		case errors.Is(err, repo.ErrOutcomeUnknown):
			counts["unknown"]++
			if n > 1 {
				t.Errorf("%s is there %d times", op, n)
			}
		case errors.Is(err, delegate.ErrRepeated):
			t.Errorf("%s had no repetition", op)
		default:
			counts["not applied"]++
			if n != 0 {
				t.Errorf("%s was not applied (%v), and is there %d times", op, err, n)
			}
		}
		delete(times, op)
	}
	for op, n := range times {
		t.Errorf("nobody was told of %s, which is there %d times", op, n)
	}
	t.Log(counts)
	if counts["applied"] == 0 {
		t.Error("nothing was applied")
	}
}

type process struct {
	items *optimistic.Repository[list]
	all   *delegate.Commands[list]
	add   *delegate.Call[string, int]
}

var key = repo.Key{Partition: "s", Sort: "list"}

// start opens what one process has of a table.
func start(t testing.TB, client *dynamodb.Client, name string) *process {
	t.Helper()
	return opened(t, rig.Must(repo.NewTable[list](client, name, repo.TableConfig{}))(t))
}

// withList is a table with the one item, and a process that has made it.
func withList(t testing.TB, ops ...string) (b *rig.Rig, first *process) {
	t.Helper()
	b = rig.New(t)
	first = start(t, b.Client, b.Table)
	rig.Is(t, first.items.Table().EnsureTable(t.Context()))
	rig.Must(first.items.Create(t.Context(), list{Shop: "s", ID: "list", Ops: ops}))(t)
	return b, first
}

func opened(t testing.TB, table *repo.Table[list]) *process {
	t.Helper()
	p := &process{items: rig.Must(optimistic.New(table, optimistic.Config{Attempts: 1000}))(t)}
	p.all = rig.Must(delegate.New(p.items, delegate.Config{}))(t)
	p.add = rig.Must(delegate.Command(p.all, "add/v1", func(_ context.Context, l *list, op string) (int, error) {
		if op[len(op)-1] == '7' {
			return 0, errSoldOut
		}
		l.Ops = append(l.Ops, op)
		return len(l.Ops), nil
	}))(t)
	return p
}

// Whatever the network does to requests and answers, no verdict is wrong; others change
// the item meanwhile in every other way.
func TestVerdictsUnderFaults(t *testing.T) {
	for _, rate := range []float64{0.02, 0.15} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			b, first := withList(t)
			seen := newAudit()
			each := rig.Share(12, 300)
			var all, others sync.WaitGroup
			over, stop := context.WithCancel(t.Context())
			for n := range 6 {
				client, in := rig.Faulty(uint64(n)+uint64(rate*1000), rate)
				p := start(t, client, b.Table)
				all.Go(func() {
					var callers sync.WaitGroup
					for c := range 2 {
						callers.Go(func() { p.call(t.Context(), seen, fmt.Sprintf("%d-%d", n, c), each) })
					}
					callers.Wait()
					rig.Is(t, p.all.Close(t.Context()))
					in.Wait()
				})
			}
			others.Go(func() { first.disturb(over, t, seen.each) })
			all.Wait()
			stop()
			others.Wait()
			seen.check(t, rig.Must(first.items.Get(t.Context(), key))(t).Ops)
		})
	}
}

// call makes changes, of which some callers do not wait for the end.
func (p *process) call(ctx context.Context, seen *audit, name string, each int) {
	for i := range each {
		op := fmt.Sprintf("%s-%d", name, i)
		ctx, cancel := ctx, context.CancelFunc(func() {})
		if i%9 == 4 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
		}
		call := p.add
		if i%5 == 3 {
			call = call.Once(op)
		}
		_, err := call.Do(ctx, key, op)
		cancel()
		seen.record(op, err)
	}
}

// disturb changes the item by a version, a lock, an expression, now and then.
func (p *process) disturb(ctx context.Context, t *testing.T, each <-chan struct{}) {
	locks := rig.Must(pessimistic.New(p.items.Table(), pessimistic.Config{}))(t)
	more := func(_ context.Context, l *list) error { l.Others++; return nil }
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-each:
		}
		var err error
		switch n % 3 {
		case 0:
			_, err = p.items.Update(ctx, key, more)
		case 1:
			_, err = locks.Update(ctx, key, more)
		case 2:
			_, err = p.items.Apply(ctx, key, expression.Add(expression.Name("others"), expression.Value(1)))
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, repo.ErrConflict) {
			t.Error(err)
		}
	}
}

// Processes die at any step of what they do, leaders too. What they were told is true, and
// those who live go on at once.
func TestProcessesDie(t *testing.T) {
	t.Parallel()
	for seed := range uint64(rig.Share(2, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b, first := withList(t)
			seen := newAudit()
			b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
				die(t, b.Table, network, seen, seed)
			})
			seen.check(t, rig.Must(first.items.Get(t.Context(), key))(t).Ops)
		})
	}
}

// die kills one of eight processes after the other, and starts another in its place.
func die(t *testing.T, table string, network fault.Doer, seen *audit, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var running []*rig.Mortal
	begin := func(n int) *rig.Mortal {
		net := &rig.Mortal{Next: network, Latency: 2 * time.Millisecond}
		p := start(t, rig.Client(rig.Over(net)), table)
		all.Go(func() {
			for i := 0; ctx.Err() == nil && !net.Dead.Load(); i++ {
				op := fmt.Sprintf("%d-%d", n, i)
				_, err := p.add.Do(context.Background(), key, op)
				seen.record(op, err)
			}
			rig.Is(t, p.all.Close(context.Background()))
		})
		return net
	}
	for n := range 8 {
		running = append(running, begin(n))
	}
	for n := 8; n < 20; n++ {
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
		i := random.IntN(len(running))
		running[i].Dead.Store(true)
		running[i] = begin(n)
	}
	time.Sleep(200 * time.Millisecond)
	stop()
	all.Wait()
	synctest.Wait()
}
