package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
)

// process opens the accounts as another process has them.
func process(tb testing.TB, client *dynamodb.Client, cfg repo.TableConfig) *pessimistic.Repository[account] {
	tb.Helper()
	accounts, err := open(context.Background(), client, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return accounts
}

func TestDeposit(t *testing.T) {
	accounts := process(t, localdb.Client(t), repo.TableConfig{})
	for want := 30; want <= 90; want += 30 {
		a, err := deposit(t.Context(), accounts, "a1", 30)
		if err != nil || a.Balance != want {
			t.Fatalf("%+v, %v", a, err)
		}
	}
}

func TestDeadHolder(t *testing.T) {
	var clock repotest.Clock
	client, cfg := localdb.Client(t), repo.TableConfig{Clock: clock.Now}
	a, b := process(t, client, cfg), process(t, client, cfg)
	if _, err := deposit(t.Context(), a, "a1", 30); err != nil {
		t.Fatal(err)
	}
	dead, err := a.Acquire(t.Context(), repo.Key{Partition: "a1"}) // and it dies
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Minute) // the lease is 30 s
	if got, err := deposit(t.Context(), b, "a1", 12); err != nil || got.Balance != 42 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := dead.Commit(t.Context(), account{ID: "a1"}); !errors.Is(err, repo.ErrLockLost) {
		t.Errorf("the dead holder comes back: %v", err)
	}
}

func TestLostAnswer(t *testing.T) {
	faults := repotest.NewFaults(t, localdb.Client(t))
	accounts := process(t, faults.Client(), repo.TableConfig{})
	if _, err := deposit(t.Context(), accounts, "a1", 30); err != nil {
		t.Fatal(err)
	}
	faults.Reset()
	faults.Nth("UpdateItem", 2, repotest.AnswerLost) // the first takes the lock, the second commits
	a, err := deposit(t.Context(), accounts, "a1", 12)
	if err != nil || a.Balance != 42 {
		t.Errorf("%+v, %v", a, err)
	}
	if n := faults.Requests(); n != 3 {
		t.Errorf("%d requests, want 3: one more to learn that the commit was applied", n)
	}
}

func TestAccountsKeepTheirPromises(t *testing.T) {
	repotest.Run(t, repotest.Suite[account]{
		Open: func(tb testing.TB, client *dynamodb.Client) repo.Repository[account] {
			return process(tb, client, repo.TableConfig{}) // with all that you build around it
		},
		New:   func(id string) account { return account{ID: id} },
		Key:   func(a account) repo.Key { return repo.Key{Partition: a.ID} },
		Add:   func(a *account) { a.Balance++ },
		Count: func(a account) int { return a.Balance },
	})
}
