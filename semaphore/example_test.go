package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/semaphore"
)

func ExampleSemaphore_Acquire() {
	ctx := context.Background()
	printers, err := semaphore.New(rig.Client(), "example-printers", semaphore.Config{})
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
