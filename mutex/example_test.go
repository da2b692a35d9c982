package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

func Example() {
	ctx := context.Background()
	client := rig.Client() // against AWS: dynamodb.NewFromConfig(cfg)
	locks, err := mutex.New(client, "example-locks", mutex.Config{Mode: mutex.FailOpen, Heartbeat: 10 * time.Second})
	check(err)
	check(locks.EnsureTable(ctx))

	lock, err := locks.Lock(ctx, "nightly-report")
	check(err)
	_, err = locks.TryLock(ctx, "nightly-report")
	fmt.Println("second:", errors.Is(err, repo.ErrLocked))
	check(lock.Unlock(ctx))

	check(locks.Do(ctx, "nightly-report", func(_ context.Context, again *mutex.Lock) error {
		fmt.Println("the next token is greater:", again.Token() > lock.Token())
		return nil
	}))

	// Two accounts, in whatever order they are named: no deadlock.
	both, err := locks.LockAll(ctx, "account-7", "account-3")
	check(err)
	fmt.Println("held:", len(both.Locks()))
	check(both.Unlock(ctx))
	// Output:
	// second: true
	// the next token is greater: true
	// held: 2
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
