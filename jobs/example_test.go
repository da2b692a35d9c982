package jobs_test

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := rig.Client() // against AWS: dynamodb.NewFromConfig(cfg)
	deploys, err := jobs.New[string](client, "example-deploys", jobs.Config{})
	check(err)
	check(deploys.EnsureTable(ctx))

	for _, version := range []string{"v1", "v2", "v3"} {
		_, err := deploys.Enqueue(ctx, "staging", version)
		check(err)
	}
	check(deploys.Run(ctx, func(_ context.Context, job *jobs.Job[string]) error {
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

func check(err error) {
	if err != nil {
		panic(err)
	}
}
