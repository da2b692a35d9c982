package faults_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// writing is a way to add an operation's id to an item, in the mode of a strategy.
type writing struct {
	name string
	// blind says that the write has not read the item, so that it starts a new ring: it
	// covers the traces of those before it, and of a copy that the network makes nothing
	// tells that it is one.
	blind bool
	// covered says that nothing but its own ring tells of it, and its process's next
	// write may cover that.
	covered bool
	open    func(t testing.TB, f *fixture.Fixture, client repo.Client) func(ctx context.Context, id string) error
}

// writings are all of them.
func writings() (all []writing) {
	for _, s := range append(faultStrategies(), fixture.Strategy{Name: "optimistic, fair", Open: func(t testing.TB, f *fixture.Fixture, c repo.Client) repo.Repository[fixture.Account] {
		return rig.Must(optimistic.New(f.Items(t, c), optimistic.Config{Fair: true}))(t)
	}}) {
		all = append(all, writing{name: s.Name, open: func(t testing.TB, f *fixture.Fixture, c repo.Client) func(context.Context, string) error {
			r := s.Open(t, f, c)
			return func(ctx context.Context, id string) error {
				_, err := r.Update(ctx, fixture.Key, addOp(id))
				return err
			}
		}})
	}
	versions := func(t testing.TB, f *fixture.Fixture, c repo.Client) *optimistic.Repository[fixture.Account] {
		return rig.Must(optimistic.New(f.Items(t, c), optimistic.Config{Attempts: 1000}))(t)
	}
	locks := func(t testing.TB, f *fixture.Fixture, c repo.Client) *pessimistic.Repository[fixture.Account] {
		return rig.Must(pessimistic.New(f.Items(t, c), pessimistic.Config{Lease: 2 * time.Second, Renew: true, ClockSkew: time.Millisecond}))(t)
	}
	return append(all,
		writing{name: "optimistic Save", blind: true, open: func(t testing.TB, f *fixture.Fixture, c repo.Client) func(context.Context, string) error {
			r := versions(t, f, c)
			return func(ctx context.Context, id string) error {
				for {
					item, err := r.Get(ctx, fixture.Key)
					if err != nil {
						return err
					}
					item.Ops = append(item.Ops, id)
					if _, err = r.Save(ctx, item); !errors.Is(err, repo.ErrConflict) {
						return err
					}
				}
			}
		}},
		writing{name: "optimistic Apply", blind: true, covered: true, open: func(t testing.TB, f *fixture.Fixture, c repo.Client) func(context.Context, string) error {
			r := versions(t, f, c)
			return func(ctx context.Context, id string) error {
				_, err := r.Apply(ctx, fixture.Key, appendOp(id))
				return err
			}
		}},
		writing{name: "optimistic Apply, with an id", open: func(t testing.TB, f *fixture.Fixture, c repo.Client) func(context.Context, string) error {
			r := versions(t, f, c)
			return func(ctx context.Context, id string) error {
				_, err := r.Once(id).Apply(ctx, fixture.Key, appendOp(id))
				return err
			}
		}},
		writing{name: "pessimistic Apply", blind: true, covered: true, open: func(t testing.TB, f *fixture.Fixture, c repo.Client) func(context.Context, string) error {
			r := locks(t, f, c)
			return func(ctx context.Context, id string) error {
				_, err := r.Apply(ctx, fixture.Key, appendOp(id))
				return err
			}
		}},
		writing{name: "nolock Apply (events)", blind: true, covered: true, open: func(t testing.TB, f *fixture.Fixture, c repo.Client) func(context.Context, string) error {
			r := rig.Must(nolock.New(f.Items(t, c), nolock.Config{}))(t)
			return func(ctx context.Context, id string) error {
				return r.Apply(ctx, fixture.Key, eventTimes.Add(1), appendOp(id))
			}
		}},
		writing{name: "transactions over optimistic", open: func(t testing.TB, f *fixture.Fixture, c repo.Client) func(context.Context, string) error {
			r := versions(t, f, c)
			return func(ctx context.Context, id string) error {
				return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
					_, err := r.In(tx).Update(ctx, fixture.Key, addOp(id))
					return err
				})
			}
		}},
		writing{name: "transactions over pessimistic", open: func(t testing.TB, f *fixture.Fixture, c repo.Client) func(context.Context, string) error {
			r := locks(t, f, c)
			return func(ctx context.Context, id string) error {
				return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
					_, err := r.In(tx).Update(ctx, fixture.Key, addOp(id))
					return err
				})
			}
		}})
}

// eventTimes are the times of events: each is the newest when it is sent.
var eventTimes atomic.Int64

func init() { eventTimes.Store(10) }

func addOp(id string) func(context.Context, *fixture.Account) error {
	return func(_ context.Context, a *fixture.Account) error { a.Ops = append(a.Ops, id); return nil }
}

func appendOp(id string) expression.UpdateBuilder {
	ops := expression.Name("ops")
	return expression.Set(ops, expression.ListAppend(expression.IfNotExists(ops, expression.Value([]string{})), expression.Value([]string{id})))
}

// patientFor is a client that loses, breaks and repeats a quarter of its requests, and
// makes so many attempts.
func patientFor(seed uint64, attempts int, kinds ...fault.Kind) (*dynamodb.Client, *fault.Injector) {
	var in *fault.Injector
	return rig.Client(attemptsOf(attempts), func(o *dynamodb.Options) {
		in = fault.New(o.HTTPClient, fault.Config{Seed: seed, Rate: faultRate, Kinds: kinds})
		o.HTTPClient = in
	}), in
}

// attemptsOf is an option of a client: a policy of so many attempts.
func attemptsOf(n int) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
			so.MaxAttempts, so.MaxBackoff, so.RateLimiter = n, 20*time.Millisecond, ratelimit.None
		})
	}
}

// outcomes is how calls ended.
type outcomes struct {
	requests, faults int
	verdicts, failed int
	landed, lost     int // of those that are unknown, by the item
	why              map[string]int
}

// unknown are both kinds.
func (s outcomes) unknown() int { return s.landed + s.lost }

func (s *outcomes) add(o outcomes) {
	s.requests, s.faults = s.requests+o.requests, s.faults+o.faults
	s.verdicts, s.failed, s.landed, s.lost = s.verdicts+o.verdicts, s.failed+o.failed, s.landed+o.landed, s.lost+o.lost
	if s.why == nil {
		s.why = map[string]int{}
	}
	for text, n := range o.why {
		s.why[text] += n
	}
}

// causeOf is why an outcome is unknown, or the error of the last attempt if that had no
// answer.
func causeOf(err error) string {
	_, why, _ := strings.Cut(err.Error(), repo.ErrOutcomeUnknown.Error()+": ")
	if strings.Contains(why, " on table ") {
		return "the last attempt had no answer"
	}
	return why
}

// unknowns runs writers on one item: processes of so many callers each.
func unknowns(t *testing.T, s writing, seed uint64, processes, callers, each, attempts int) (sum outcomes) {
	f := fixture.New(t)
	rig.Must(rig.Must(optimistic.New(f.Items(t, f.Client), optimistic.Config{}))(t).Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
	var kinds []fault.Kind
	if s.blind {
		kinds = slices.DeleteFunc(fault.AllKinds(), func(k fault.Kind) bool { return k == fault.Resend || k == fault.LateDuplicate })
	}
	v := &truth{verdicts: map[string]error{}}
	var injectors []*fault.Injector
	var done sync.WaitGroup
	for p := range processes {
		client, in := patientFor(seed+uint64(p), attempts, kinds...)
		injectors = append(injectors, in)
		write := s.open(t, f, client)
		for c := range callers {
			done.Go(func() {
				for n := range each {
					id := fmt.Sprintf("%d-%d-%d", p, c, n)
					v.record(id, write(t.Context(), id))
				}
			})
		}
	}
	done.Wait()
	for _, in := range injectors {
		in.Wait()
		sum.requests, sum.faults = sum.requests+in.Requests(), sum.faults+in.Faulted()
	}
	ops := rig.Must(f.Items(t, f.Client).Get(t.Context(), fixture.Key))(t).Ops
	v.check(t, ops)
	sum.why = map[string]int{}
	for id, err := range v.verdicts {
		sum.verdicts++
		switch {
		case errors.Is(err, repo.ErrOutcomeUnknown) && slices.Contains(ops, id):
			sum.landed++
			sum.why[causeOf(err)]++
		case errors.Is(err, repo.ErrOutcomeUnknown):
			sum.lost++
			sum.why[causeOf(err)]++
		case err != nil:
			sum.failed++
		}
	}
	return sum
}

// TestFewOutcomesAreUnknown measures how often nobody can tell what became of a write,
// where a quarter of all requests are hit, the client makes few attempts, and others
// write at the same time. Callers of one process are each other's witnesses: at most one
// in a thousand is unknown there.
func TestFewOutcomesAreUnknown(t *testing.T) {
	seed := fixture.Seed(t)
	each := rig.Share(2, 25)
	for _, how := range []struct {
		name               string
		processes, callers int
	}{{"one process of 12 callers", 1, 12}, {"8 processes of one caller", 8, 1}} {
		for _, s := range writings() {
			t.Run(how.name+", "+s.name, func(t *testing.T) {
				t.Parallel()
				for _, attempts := range []int{2, 3, 10} {
					var sum outcomes
					for round := range max(1, *roundsFlag) {
						sum.add(unknowns(t, s, seed+uint64(round)*100, how.processes, how.callers, each, attempts))
					}
					if how.processes == 1 && !s.covered && sum.unknown() > 1+sum.verdicts/1000 {
						t.Errorf("%d attempts: %d of %d outcomes are unknown: %v", attempts, sum.unknown(), sum.verdicts, sum.why)
					}
					t.Logf("%d attempts: %d requests, %d faults, %d verdicts, %d unknown (%d written, %d not: %v)", attempts, sum.requests, sum.faults, sum.verdicts, sum.unknown(), sum.landed, sum.lost, sum.why)
				}
			})
		}
	}
}
