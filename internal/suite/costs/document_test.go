package costs_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
)

// bill is what calls cost.
type bill struct{ requests, writes, reads float64 }

// meter counts what the calls of a test cost.
type meter struct {
	w *fixture.Fixture
	c *billed
}

func newMeter(t *testing.T) *meter {
	w := fixture.New(t)
	return &meter{w: w, c: &billed{Client: w.Client}}
}

// of is what one call costs.
func (m *meter) of(call func()) bill {
	before := m.now()
	call()
	after := m.now()
	return bill{after.requests - before.requests, after.writes - before.writes, after.reads - before.reads}
}

func (m *meter) now() bill {
	return bill{float64(m.w.Count.Total()), float64(m.c.writes.Load()) / 10, float64(m.c.reads.Load()) / 10}
}

// The table of costs in docs/choosing.md, measured on items of two sizes: requests in the
// transport, units as the engine bills them. Of a request that is refused the
// engine tells no units.
func TestCostsInTheDocument(t *testing.T) {
	table := costsInTheDocument(t)
	for _, size := range []int{1, 9} { // KB, rounded up
		t.Run(fmt.Sprintf("%d KB", size), func(t *testing.T) {
			note := strings.Repeat("x", (size-1)*1024+300)
			ctx, key := t.Context(), repo.Key{Partition: "p", Sort: 1}
			at := int64(10)
			item := func() fixture.Account { at++; return fixture.Account{ID: "p", Seq: 1, At: at, Note: note} }
			add := func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }
			m := newMeter(t)
			items := m.w.Items(t, m.c)
			opt := rig.Must(optimistic.New(items, optimistic.Config{}))(t)
			pess := rig.Must(pessimistic.New(items, pessimistic.Config{}))(t)
			events := rig.Must(nolock.New(items, nolock.Config{}))(t)
			locker := rig.Must(lockedread.New(items, lockedread.Config{}))(t)
			hold := func() *lockedread.Held[fixture.Account] { return rig.Must(locker.Acquire(ctx, key))(t) }
			create := func() { rig.Must(opt.Create(ctx, item()))(t) }
			refused := bill{writes: 1} // of a key without an item

			costs := map[string][]bill{}
			put := func(row string, b ...bill) { costs[row] = append(costs[row], b...) }
			put("`Create`", m.of(create))
			put("`Get`", m.of(func() { rig.Must(opt.Get(ctx, key))(t) }))
			put("`nolock` `Put`, `Apply`, `DeleteAt`",
				m.of(func() { rig.Is(t, events.Put(ctx, item())) }),
				m.of(func() {
					at++
					rig.Is(t, events.Apply(ctx, key, at, expression.Add(expression.Name("balance"), expression.Value(1))))
				}),
				m.of(func() { at++; rig.Is(t, events.DeleteAt(ctx, key, at)) }))
			rig.Is(t, events.Put(ctx, item())) // it is there again
			put("`optimistic` `Update`", m.of(func() { rig.Must(opt.Update(ctx, key, add))(t) }))
			addOne := expression.Add(expression.Name("balance"), expression.Value(1))
			applied := []bill{
				m.of(func() { rig.Must(opt.Apply(ctx, key, addOne))(t) }),
				m.of(func() { rig.Must(pess.Apply(ctx, key, addOne))(t) }),
			}
			saved := rig.Must(opt.Get(ctx, key))(t)
			put("`optimistic` `Save`, `Remove`; `Apply` of both", append(applied,
				m.of(func() { saved.Balance++; saved = rig.Must(opt.Save(ctx, saved))(t) }),
				m.of(func() { rig.Is(t, opt.Remove(ctx, saved)) }))...)
			put("`pessimistic` `Upsert` of a new item", plus(refused, m.of(func() {
				rig.Must(pess.Upsert(ctx, key, func(_ context.Context, a *fixture.Account) error { at++; a.At, a.Note = at, note; return nil }))(t)
			})))
			put("`pessimistic` `Update`, `Delete`",
				m.of(func() { rig.Must(pess.Update(ctx, key, add))(t) }),
				m.of(func() { rig.Is(t, pess.Delete(ctx, key)) }))
			create()
			held := hold()
			try := m.of(func() {
				_, err := locker.TryAcquire(ctx, key)
				rig.Is(t, err, repo.ErrLocked)
			})
			put("each try while somebody holds the item", plus(bill{writes: float64(size)}, try))
			put("`Extend`, `Release`, each renewal",
				m.of(func() { rig.Is(t, held.Extend(ctx)) }),
				m.of(func() { rig.Is(t, held.Release(ctx)) }))
			alone := m.of(func() { rig.Must(pess.Update(ctx, key, add))(t) })
			both := m.of(func() {
				update := func(c *fixture.Callers) {
					rig.Must(pess.Update(ctx, key, func(_ context.Context, a *fixture.Account) error { a.Balance++; c.First(); return nil }))(t)
				}
				c := fixture.CallersBehind(update)
				c.Done.Go(func() { update(c) })
				c.Gathered(t, 1)
				c.Done.Wait()
			})
			put("`Update` after another caller of this process, which leaves it the lock or the item",
				bill{both.requests - alone.requests, both.writes - alone.writes, both.reads - alone.reads})
			for row, b := range costsOfUnique(t, size) {
				put(row, b)
			}
			for row, b := range costsOfLocks(t) {
				put(row, b...)
			}

			for row, want := range table {
				if len(costs[row]) == 0 {
					t.Errorf("the document has a row %q that nobody measures", row)
				}
				for _, got := range costs[row] {
					rig.Equal(t, got, want.at(size), "%s: the document says", row)
					t.Logf("%-64s %3.0f requests, %4.1f write units, %4.1f read units", row, got.requests, got.writes, got.reads)
				}
			}
		})
	}
}

func plus(a, b bill) bill {
	return bill{a.requests + b.requests, a.writes + b.writes, a.reads + b.reads}
}

// costsOfLocks measures what has rows of its own.
func costsOfLocks(t *testing.T) map[string][]bill {
	ctx := t.Context()
	on := func(open func(m *meter, name string) func()) bill {
		w := fixture.Empty(t)
		m := &meter{w: w, c: &billed{Client: w.Client}}
		return m.of(open(m, w.Table))
	}
	doOnce := func(m *meter, name string) func() {
		s := rig.Must(once.New(m.c, name, once.Config{}))(t)
		rig.Is(t, s.EnsureTable(ctx))
		return func() {
			rig.Must(once.Do(ctx, s, "x", func(context.Context, once.Run) (int, error) { return 1, nil }))(t)
		}
	}
	return map[string][]bill{
		"`mutex` `Lock` and `Unlock`, `ticket` `Lock` and `Done`, `semaphore` `Acquire` and `Release`": {
			on(func(m *meter, name string) func() {
				l := rig.Must(mutex.New(m.c, name, mutex.Config{}))(t)
				rig.Is(t, l.EnsureTable(ctx))
				return func() { rig.Is(t, rig.Must(l.Lock(ctx, "x"))(t).Unlock(ctx)) }
			}),
			on(func(m *meter, name string) func() {
				q := rig.Must(ticket.New(m.c, name, ticket.Config{}))(t)
				rig.Is(t, q.EnsureTable(ctx))
				return func() { rig.Is(t, rig.Must(q.Lock(ctx, "x"))(t).Done(ctx)) }
			}),
			on(func(m *meter, name string) func() {
				s := rig.Must(semaphore.New(m.c, name, semaphore.Config{}))(t)
				rig.Is(t, s.EnsureTable(ctx))
				return func() { rig.Is(t, rig.Must(s.Acquire(ctx, "x"))(t).Release(ctx)) }
			}),
		},
		"`once.Do` for the first time, with its completion": {on(doOnce)},
		"`once.Do` again": {plus(bill{writes: 1}, on(func(m *meter, name string) func() {
			again := doOnce(m, name)
			again() // for the first time
			return again
		}))},
		"`jobs` job: `Enqueue`, `Next`, `Done`": {on(func(m *meter, name string) func() {
			s := rig.Must(jobs.New[int](m.c, name, jobs.Config{}))(t)
			rig.Is(t, s.EnsureTable(ctx))
			job := func() {
				rig.Must(s.Enqueue(ctx, "x", 1))(t)
				rig.Is(t, rig.Must(s.Next(ctx, "x"))(t).Done(ctx))
			}
			job() // which writes the wake-up row
			return job
		})},
	}
}

// price is a cost as the document has it: a multiple of S, of S/4, and a constant.
type price struct{ requests, writes, reads amount }

type amount struct {
	perS, perRead, fixed int
}

func (a amount) at(size int) float64 { return float64(a.perS*size + a.perRead*((size+3)/4) + a.fixed) }

func (p price) at(size int) bill {
	return bill{p.requests.at(size), p.writes.at(size), p.reads.at(size)}
}

var amounts = regexp.MustCompile(`^(?:(?:(\d+) )?(S)(/4)?)?(?: \+ )?(\d+)?$`)

// costsInTheDocument reads the document's table.
func costsInTheDocument(t *testing.T) map[string]price {
	t.Helper()
	_, text, _ := strings.Cut(string(rig.Must(os.ReadFile("../../../docs/choosing.md"))(t)), "| call | requests | write units | read units |\n| --- | --- | --- | --- |\n")
	prices := map[string]price{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			t.Fatalf("row %q", line)
		}
		parse := func(cell string) (a amount) {
			m := amounts.FindStringSubmatch(strings.TrimSpace(cell))
			if m == nil {
				t.Fatalf("cell %q of row %q", cell, line)
			}
			times := 1
			if m[1] != "" {
				times, _ = strconv.Atoi(m[1])
			}
			switch {
			case m[3] != "":
				a.perRead = times
			case m[2] != "":
				a.perS = times
			}
			a.fixed, _ = strconv.Atoi(m[4])
			return a
		}
		prices[strings.TrimSpace(cells[0])] = price{parse(cells[1]), parse(cells[2]), parse(cells[3])}
	}
	if len(prices) < 10 {
		t.Fatalf("the document's table has %d rows", len(prices))
	}
	return prices
}
