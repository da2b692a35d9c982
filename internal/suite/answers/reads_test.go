package answers_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

// reading is a public call that reads one thing which is there: how many it has found.
type reading struct {
	name string
	open func(t *testing.T, p *place, c client) func(context.Context) (int, error)
}

const found = "found"

func count[V any](all iter.Seq2[V, error]) (n int, err error) {
	for _, err = range all {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func readings() []reading {
	items := func(name string, do func(context.Context, *repo.Table[account]) (int, error)) reading {
		return reading{name, func(t *testing.T, p *place, c client) func(context.Context) (int, error) {
			table := p.items(t, c)
			return func(ctx context.Context) (int, error) { return do(ctx, table) }
		}}
	}
	one := func(err error) (int, error) { return 1, err }
	return []reading{
		items("Get", func(ctx context.Context, items *repo.Table[account]) (int, error) {
			return one(justErr(items.Get(ctx, keyOf(found))))
		}),
		items("Inspect", func(ctx context.Context, items *repo.Table[account]) (int, error) {
			return one(justErr(items.Inspect(ctx, keyOf(found))))
		}),
		items("Query", func(ctx context.Context, items *repo.Table[account]) (int, error) {
			return count(items.Query(ctx, found))
		}),
		items("Scan", func(ctx context.Context, items *repo.Table[account]) (int, error) { return count(items.Scan(ctx)) }),
		items("EnsureTable", func(ctx context.Context, items *repo.Table[account]) (int, error) { return one(items.EnsureTable(ctx)) }),
		items("GetMany", func(ctx context.Context, items *repo.Table[account]) (int, error) {
			all, err := items.GetMany(ctx, keyOf(found))
			if err == nil && all[0] == nil {
				return 0, nil
			}
			return len(all), err
		}),
		{"Get of two at one moment", func(t *testing.T, p *place, c client) func(context.Context) (int, error) {
			r := versions(optimistic.Config{})(t, p.items(t, c))
			return func(ctx context.Context) (n int, err error) {
				err = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
					n = 0
					if err := tx.Prefetch(ctx, r.Keys(keyOf(found), keyOf("none"))); err != nil {
						return err
					}
					if _, err := r.In(tx).Get(ctx, keyOf("none")); !errors.Is(err, repo.ErrNotFound) {
						return err
					}
					n++
					return justErr(r.In(tx).Get(ctx, keyOf(found)))
				})
				return n, err
			}
		}},
		{"mutex.List", func(t *testing.T, p *place, c client) func(context.Context) (int, error) {
			l := rig.Must(mutex.New(c, p.names, mutex.Config{}))(t)
			return func(ctx context.Context) (int, error) { return count(l.List(ctx)) }
		}},
		{"ticket.List", func(t *testing.T, p *place, c client) func(context.Context) (int, error) {
			q := rig.Must(ticket.New(c, p.queues, ticket.Config{}))(t)
			return func(ctx context.Context) (int, error) { all, err := q.List(ctx, found); return len(all), err }
		}},
		{"semaphore.Jobs", func(t *testing.T, p *place, c client) func(context.Context) (int, error) {
			s := rig.Must(jobs.New[int](c, p.jobs, jobs.Config{}))(t)
			return func(ctx context.Context) (int, error) { return count(s.Jobs(ctx, found)) }
		}},
		{"jobs.Resource", func(t *testing.T, p *place, c client) func(context.Context) (int, error) {
			s := rig.Must(jobs.New[int](c, p.jobs, jobs.Config{}))(t)
			return func(ctx context.Context) (int, error) { r, err := s.Resource(ctx, found); return r.Queued, err }
		}},
	}
}

// finds makes what is found.
func (p *place) finds(t *testing.T) {
	there(t, versions(optimistic.Config{})(t, p.items(t, p.peer)), found)
	rig.Must(rig.Must(mutex.New(p.peer, p.names, mutex.Config{}))(t).Lock(t.Context(), found))(t)
	q := rig.Must(ticket.New(p.peer, p.queues, ticket.Config{}))(t)
	rig.Must(q.Join(t.Context(), found))(t)
	t.Cleanup(func() { rig.Is(t, q.Close(context.Background())) })
	rig.Must(rig.Must(jobs.New[int](p.peer, p.jobs, jobs.Config{}))(t).Enqueue(t.Context(), found, 1))(t)
}

// A false answer to a read is an error that may be repeated: never that nothing is there.
func TestFalseAnswersToReads(t *testing.T) {
	p := newPlace(t)
	cells, wrong := 0, 0
	rig.InVirtualTime(t, 8, func(t *testing.T, doer fault.Doer) {
		p.peer = rig.Client(rig.Over(doer))
		p.finds(t)
		net := &network{next: doer}
		for _, r := range readings() {
			for i, way := range ways {
				known, n := r.open(t, p, net.client(t, way)), 0
				if got, err := known(t.Context()); got != 1 || err != nil {
					t.Fatalf("%s, %s, undisturbed: %d, %v", r.name, way, got, err)
				}
				for _, k := range kinds {
					if k.hidden(way) {
						continue
					}
					for _, always := range []bool{false, true} {
						read := known
						if n++; !k.known && n%3 == i { // the first answer that it hears of this endpoint
							read = r.open(t, p, net.client(t, way))
						}
						net.lies(&k, 0, false, true)
						if !always {
							net.once()
						}
						got, err := read(t.Context())
						net.heals()
						cells++
						if why := misread(got, err, always, way, k); why != "" {
							wrong++
							t.Errorf("%s, %s: %s, always %v: %s: %d, %v", r.name, way, k.name, always, why, got, err)
						}
					}
				}
			}
		}
	})
	t.Logf("%d reads, %d kinds, %d ways: %d cells; %d wrong", len(readings()), len(kinds), len(ways), cells, wrong)
}

func misread(got int, err error, always bool, way string, k kind) string {
	switch {
	case err == nil && got != 1:
		return "not all was read"
	case always && err == nil:
		return "there was no true answer"
	case !always && err != nil && way != "without options":
		return "one answer was false, and the call failed"
	case way == "without options" && k.marked:
		return "" // the body, which alone tells, is out of sight
	}
	for _, belief := range []error{repo.ErrNotFound, repo.ErrNoTable, repo.ErrDenied, repo.ErrSchema, repo.ErrOutcomeUnknown} {
		if errors.Is(err, belief) {
			return "what was false is believed"
		}
	}
	return ""
}

// The first answer of all that a client hears is false; of an endpoint that gives checksums,
// and of one that never does.
func TestFirstAnswerIsFalse(t *testing.T) {
	p := newPlace(t)
	sum := &tally{}
	rig.InVirtualTime(t, 8, func(t *testing.T, doer fault.Doer) {
		p.peer = rig.Client(rig.Over(doer))
		net, n := &network{next: doer}, 0
		for _, call := range []struct {
			name string
			run  func(context.Context, *testing.T, *repo.Table[account], string) error
		}{
			{"nolock.Update", func(ctx context.Context, t *testing.T, items *repo.Table[account], id string) error {
				return justErr(rig.Must(nolock.New(items, nolock.Config{}))(t).Update(ctx, keyOf(id), addOne))
			}},
			{"optimistic.Update", func(ctx context.Context, t *testing.T, items *repo.Table[account], id string) error {
				return justErr(rig.Must(optimistic.New(items, optimistic.Config{}))(t).Update(ctx, keyOf(id), addOne))
			}},
			{"optimistic.Create", func(ctx context.Context, t *testing.T, items *repo.Table[account], id string) error {
				rig.Is(t, versions(optimistic.Config{})(t, p.items(t, p.peer)).Delete(ctx, keyOf(id)))
				a := first(id)
				a.Balance = 1
				return justErr(rig.Must(optimistic.New(items, optimistic.Config{}))(t).Create(ctx, a))
			}},
			{"pessimistic.Update", func(ctx context.Context, t *testing.T, items *repo.Table[account], id string) error {
				return justErr(rig.Must(pessimistic.New(items, pessimistic.Config{}))(t).Update(ctx, keyOf(id), addOne))
			}},
		} {
			for _, k := range kinds {
				for i := range 8 {
					n++
					if k.known || k.hidden(ways[n%len(ways)]) {
						continue
					}
					net.bare = i >= 4
					id := fmt.Sprintf("f%d", n)
					there(t, versions(optimistic.Config{})(t, p.items(t, p.peer)), id)
					c := &cell{caller(call.name), k, ways[n%len(ways)], 1, i%2 == 0, i/2%2 == 0, false}
					net.lies(&k, 0, c.applied, true)
					if !c.always {
						net.once()
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					err := call.run(ctx, t, rig.Must(repo.NewTable[fixture.Account](net.client(t, c.way), p.accounts, repo.TableConfig{}))(t), id)
					cancel()
					_, lied := net.heals()
					sum.cells++
					sum.lies += lied
					sum.add(err)
					if why := c.wrong(err, balance(t, p, id)(t.Context()), lied); why != "" {
						sum.wrong++
						t.Errorf("%v: %s: %v", c, why, err)
					}
				}
			}
		}
	})
	t.Logf("%d cells, %d false answers: %d written, %d unknown, %d refused; %d wrong", sum.cells, sum.lies, sum.written, sum.unknown, sum.refused, sum.wrong)
}

// caller is a call that one false answer may leave without a verdict.
func caller(name string) call { return call{name: name, unsure: true} }
