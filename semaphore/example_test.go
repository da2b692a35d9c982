package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/semaphore"
)

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := rig.Client() // against AWS: dynamodb.NewFromConfig(cfg)
	deploys, err := semaphore.New[string](client, "example-deploys", semaphore.Config{})
	check(err)
	check(deploys.EnsureTable(ctx))

	for _, version := range []string{"v1", "v2", "v3"} {
		_, err := deploys.Enqueue(ctx, "staging", version)
		check(err)
	}
	check(deploys.Run(ctx, func(_ context.Context, job *semaphore.Job[string]) error {
		fmt.Println(job.Resource(), job.Value())
		if job.Value() == "v3" {
			cancel() // Run goes on until it is told to end
		}
		return nil
	}))
	// Output:
	// staging v1
	// staging v2
	// staging v3
}

func ExampleSemaphore_Acquire() {
	ctx := context.Background()
	printers, err := semaphore.New[string](rig.Client(), "example-printers", semaphore.Config{})
	check(err)
	check(printers.EnsureTable(ctx))
	check(printers.SetLimit(ctx, "third floor", 2))

	for range 2 {
		permit, err := printers.Acquire(ctx, "third floor")
		check(err)
		defer func() { check(permit.Release(ctx)) }()
	}
	_, err = printers.TryAcquire(ctx, "third floor")
	fmt.Println(errors.Is(err, semaphore.ErrBusy), err)
	// Output: true resource "third floor" is busy: 2 running, its limit is 2
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
