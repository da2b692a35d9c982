package repotest_test

import (
	"context"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
)

// A holder dies, and the lock is free as soon as the clock says so.
func ExampleClock() {
	ctx := context.Background()
	db, err := localdb.Start(ctx, localdb.Config{}) // in a test: localdb.Client(t)
	check(err)
	defer db.Close()

	var clock repotest.Clock
	locks, err := mutex.New(db.Client(), "repotest-example", mutex.Config{Mode: mutex.FailOpen, Lease: time.Hour, Table: repo.TableConfig{Clock: clock.Now}})
	check(err)
	check(locks.EnsureTable(ctx))
	dead, err := locks.Lock(ctx, "nightly-report")
	check(err)

	clock.Advance(2 * time.Hour)
	lock, err := locks.Lock(ctx, "nightly-report") // at once
	check(err)
	fmt.Println(lock.Token() > dead.Token())
	<-dead.Context().Done()
	fmt.Println(context.Cause(dead.Context()))
	// Output:
	// true
	// own lock expired
}

// The answer to a write is lost: one request more finds out that it was applied.
func ExampleFaults() {
	var t *testing.T // that of the test
	ctx := t.Context()
	faults := repotest.NewFaults(t, localdb.Client(t))
	table, err := repo.NewTable[account](faults.Client(), "accounts", repo.TableConfig{})
	check(err)
	check(table.EnsureTable(ctx))
	accounts, err := optimistic.New(table, optimistic.Config{})
	check(err)

	faults.Reset()
	faults.Nth("UpdateItem", 1, repotest.AnswerLost)
	_, err = accounts.Create(ctx, account{ID: "a1"})
	fmt.Println(err, faults.Requests()) // <nil> 2
}

// Another writes between the read and the write of a change, which is made anew.
func ExampleFaults_Before() {
	var t *testing.T // that of the test
	var faults *repotest.Faults
	var accounts, others repo.Repository[account] // the first by faults.Client()

	faults.Before("UpdateItem", 1, func() { _, _ = others.Update(t.Context(), key, addOne) })
	got, err := accounts.Update(t.Context(), key, addOne)
	fmt.Println(got.Balance, err) // 2 <nil>
}

// What stands around a repository keeps its promises.
func ExampleRun() {
	var t *testing.T // that of the test
	repotest.Run(t, repotest.Suite[account]{
		Open: func(tb testing.TB, client *dynamodb.Client) repo.Repository[account] {
			table, err := repo.NewTable[account](client, "accounts", repo.TableConfig{})
			if err == nil {
				err = table.EnsureTable(context.Background())
			}
			if err != nil {
				tb.Fatal(err)
			}
			accounts, err := optimistic.New(table, optimistic.Config{})
			if err != nil {
				tb.Fatal(err)
			}
			return accounts // and what you build around it
		},
		New:   func(id string) account { return account{ID: id} },
		Key:   func(a account) repo.Key { return repo.Key{Partition: a.ID} },
		Add:   func(a *account) { a.Balance++ },
		Count: func(a account) int { return a.Balance },
	})
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
