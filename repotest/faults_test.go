package repotest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
)

// broken is a table with an account, and a client of it that breaks.
func broken(t *testing.T) (*repotest.Faults, *repo.Table[account]) {
	t.Helper()
	var clock repotest.Clock
	plain := open(t, &clock)
	faults := repotest.NewFaults(t, rig.Client())
	return faults, rig.Must(repo.NewTable[account](faults.Client(), plain.Name(), repo.TableConfig{}))(t)
}

// Each fault at each request of a locked change: it happens, the change is in the item
// once, and what the client repeats is counted.
func TestEachFaultAtEachRequest(t *testing.T) {
	t.Parallel()
	for _, kind := range repotest.AllFaults() {
		for nth := 1; nth <= 2; nth++ {
			t.Run(fmt.Sprint(kind, " ", nth), func(t *testing.T) {
				faults, table := broken(t)
				accounts := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
				faults.Nth("UpdateItem", nth, kind)
				_, err := accounts.Update(soon(t), key, addOne)
				rig.Is(t, err)
				sent := faults.Requests("UpdateItem")
				faults.Reset()
				if got := rig.Must(table.Get(t.Context(), key))(t); got.Balance != 1 {
					t.Errorf("%+v", got)
				}
				copied := kind == repotest.ArrivesTwice || kind == repotest.ArrivesLate // by the network, not by the client
				rig.Equal(t, copied, sent == 2, "%d requests", sent)
			})
		}
	}
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	faults, table := broken(t)
	accounts := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	rig.Must(accounts.Update(t.Context(), key, addOne))(t)
	rig.Must(accounts.Get(t.Context(), key))(t)
	if all, writes, both := faults.Requests(), faults.Requests("UpdateItem"), faults.Requests("UpdateItem", "GetItem"); all != 3 || writes != 2 || both != 3 {
		t.Errorf("%d requests, %d of them writes, %d of both", all, writes, both)
	}
	if faults.Reset(); faults.Requests() != 0 {
		t.Errorf("%d requests after Reset", faults.Requests())
	}
}

// What is broken for good ends the call: nothing was written.
func TestEachRequestBreaks(t *testing.T) {
	t.Parallel()
	faults, table := broken(t)
	accounts := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	faults.Each("UpdateItem", repotest.Throttled)
	_, err := accounts.Update(soon(t), key, addOne)
	if err == nil || repo.VerdictOf(err) != repo.NotWritten {
		t.Errorf("error %v", err)
	}
	faults.Reset()
	rig.Must(accounts.Update(t.Context(), key, addOne))(t)
}

// An unknown outcome, as docs/testing.md says how to make one: nothing is left to ask.
func TestAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	faults, table := broken(t)
	locks, versions := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t), rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	more := expression.Add(expression.Name("balance"), expression.Value(1))
	for _, apply := range []func(context.Context, repo.Key, expression.UpdateBuilder, ...expression.ConditionBuilder) (account, error){locks.Apply, versions.Apply} {
		faults.Reset()
		faults.Nth("UpdateItem", 1, repotest.AnswerLost)
		faults.Each("GetItem", repotest.RequestLost)
		_, err := apply(soon(t), key, more)
		rig.Is(t, err, repo.ErrOutcomeUnknown)
	}
	faults.Reset()
	if got := rig.Must(table.Get(t.Context(), key))(t); got.Balance != 2 {
		t.Errorf("%+v", got)
	}
	faults.Nth("DeleteItem", 1, repotest.AnswerLost)
	rig.Is(t, versions.Delete(soon(t), key), repo.ErrOutcomeUnknown)
}

// A conflict: another writes between the read and the write. And an answer that comes
// when the lease is over by the clock.
func TestWhatOthersDoMeanwhile(t *testing.T) {
	t.Parallel()
	faults, table := broken(t)
	accounts := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	other := rig.Must(optimistic.New(rig.Must(repo.NewTable[account](rig.Client(), table.Name(), repo.TableConfig{}))(t), optimistic.Config{}))(t)
	faults.Before("UpdateItem", 1, func() { rig.Must(other.Update(context.Background(), key, addOne))(t) })
	runs := 0
	got := rig.Must(accounts.Update(t.Context(), key, func(ctx context.Context, a *account) error { runs++; return addOne(ctx, a) }))(t)
	if got.Balance != 2 || runs != 2 {
		t.Errorf("balance %d after %d runs", got.Balance, runs)
	}

	var clock repotest.Clock
	timed := rig.Must(repo.NewTable[account](faults.Client(), table.Name(), repo.TableConfig{Clock: clock.Now}))(t)
	locks := rig.Must(pessimistic.New(timed, pessimistic.Config{Lease: lease}))(t)
	faults.Reset()
	faults.After("UpdateItem", 1, func() { clock.Advance(2 * lease) })
	held := rig.Must(locks.Acquire(soon(t), key))(t)
	if left := held.Until().Sub(clock.Now()); left <= 0 {
		t.Errorf("it got a lock that was over: %v left", left)
	}
	rig.Is(t, held.Release(t.Context()))
}

// recorder is a test that notes what it is told.
type recorder struct {
	testing.TB
	said     []string
	cleanups []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool     { return false }
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatal(args ...any) {
	r.said = append(r.said, fmt.Sprint(args...))
	panic(errEnd)
}
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

var errEnd = errors.New("the test ends")

// Orders that make no sense, or that nothing has come of, fail the test.
func TestFaultsThatTestNothing(t *testing.T) {
	for want, do := range map[string]func(f *repotest.Faults){
		`there is no operation "UpdateItems": use one of`:      func(f *repotest.Faults) { f.Nth("UpdateItems", 1, repotest.AnswerLost) },
		`there is no operation "Update"`:                       func(f *repotest.Faults) { f.Requests("Update") },
		"there is no request number 0":                         func(f *repotest.Faults) { f.Nth("GetItem", 0, repotest.AnswerLost) },
		"there is no fault Fault(0): use one of [request lost": func(f *repotest.Faults) { f.Each("GetItem", 0) },
		"the function is nil":                                  func(f *repotest.Faults) { f.Before("GetItem", 1, nil) },
		"a fault did not happen: GetItem number 2 (answer lost); 0 of its operation were sent since": func(f *repotest.Faults) {
			f.Nth("GetItem", 2, repotest.AnswerLost)
		},
		"a fault did not happen: GetItem number 3 (throttled); 0 of its operation": func(f *repotest.Faults) {
			f.Nth("GetItem", 3, repotest.Throttled)
			f.Reset() // does not forget it
		},
		"a fault did not happen: Query, each (throttled)":                func(f *repotest.Faults) { f.Each("Query", repotest.Throttled) },
		"a fault did not happen: Scan number 1 (something is to be done": func(f *repotest.Faults) { f.After("Scan", 1, func() {}) },
	} {
		r := &recorder{TB: t}
		func() {
			defer func() {
				if p := recover(); p != nil && p != errEnd { //nolint:errorlint // the very one
					panic(p)
				}
			}()
			do(repotest.NewFaults(r, rig.Client()))
		}()
		for _, f := range r.cleanups {
			f()
		}
		if len(r.said) != 1 || !strings.Contains(r.said[0], want) {
			t.Errorf("it said %q, want %q", r.said, want)
		}
	}
	r := &recorder{TB: t}
	func() {
		defer func() { _ = recover() }()
		repotest.NewFaults(r, nil)
	}()
	if len(r.said) != 1 || !strings.Contains(r.said[0], "the client is nil") {
		t.Errorf("it said %q", r.said)
	}
}
