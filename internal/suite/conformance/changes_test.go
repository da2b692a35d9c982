package conformance_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// What can be created can be changed under its lock: the lock's attributes have
// room of their own.
func TestAnItemOfTheGreatestSizeCanBeChanged(t *testing.T) {
	t.Parallel()
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
		r := s.Open(t, w, w.Client)
		rig.Must(r.Create(t.Context(), fixture.Account{ID: "hot", Seq: 1, At: 1, Note: strings.Repeat("x", 408_576-60)}))(t)
		for _, cut := range []int{0, 0, 100} {
			rig.Must(r.Update(t.Context(), fixture.HotKey, func(_ context.Context, a *fixture.Account) error {
				a.Balance = 1
				a.At++
				a.Note = a.Note[cut:]
				return nil
			}))(t)
		}
	})
}

// plain is an item without a version: what is left to tell writers apart are
// the event time, the ring of writers and the lock's tokens.
type plain struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Seq   int    `dynamodbav:"seq" repo:"sk"`
	Count int    `dynamodbav:"count"`
	Puts  int    `dynamodbav:"puts"`
	At    int64  `dynamodbav:"at" repo:"eventtime"`
}

// TestMixingWithoutAVersion lets updates under locks, updates by event time and
// partial event writes work on one item that nobody has used before.
func TestMixingWithoutAVersion(t *testing.T) {
	w := fixture.New(t)
	key := repo.Key{Partition: "p", Sort: 1}
	var done sync.WaitGroup
	add := func(_ context.Context, p *plain) error {
		p.Count++
		p.At = max(p.At, 1) // who makes the item gives it a first event
		return nil
	}
	for range 4 {
		table := rig.Must(repo.NewTable[plain](rig.Client(), w.Table, repo.TableConfig{}))(t)
		locks := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
		events := rig.Must(nolock.New(table, nolock.Config{Attempts: 1000}))(t)
		for _, r := range []repo.Repository[plain]{locks, events} {
			done.Go(func() {
				for range 10 {
					if _, err := r.Upsert(t.Context(), key, add); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Go(func() {
			for i := range 10 {
				// Later than anything before, or dropped: it must not disturb the count.
				err := events.Apply(t.Context(), key, int64(1000+i), expression.Add(expression.Name("puts"), expression.Value(1)))
				if err != nil && !errors.Is(err, repo.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	got := rig.Must(rig.Must(repo.NewTable[plain](w.Client, w.Table, repo.TableConfig{}))(t).Get(t.Context(), key))(t)
	if got.Count != 80 || got.At != 1009 || got.Puts < 1 {
		t.Errorf("%+v, want a count of 80 at event 1009", got)
	}
}
