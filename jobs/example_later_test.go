package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// A seat is held for 15 minutes, and given back by a job; if it is paid before, the job
// goes with the transaction that pays.
func ExampleAfter() {
	ctx := context.Background()
	holds, err := jobs.New[string](rig.Client(), "example-holds", jobs.Config{})
	check(err)
	check(holds.EnsureTable(ctx))
	id, err := holds.Enqueue(ctx, "give back", "seat 17", jobs.After(15*time.Minute))
	check(err)
	_, err = holds.Next(ctx, "give back")
	fmt.Println("before its time:", errors.Is(err, jobs.ErrNoWork))

	check(txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		// Here the seat is marked as paid.
		return holds.In(tx).Cancel(ctx, "give back", id)
	}))
	fmt.Println("cancelled:", errors.Is(holds.Cancel(ctx, "give back", id), repo.ErrNotFound))
	// Output:
	// before its time: true
	// cancelled: true
}

// What cannot be done yet is put off, and its attempt is not counted.
func ExampleJob_Snooze() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	mails, err := jobs.New[string](rig.Client(), "example-mails", jobs.Config{})
	check(err)
	check(mails.EnsureTable(ctx))
	_, err = mails.Enqueue(ctx, "mail", "hello")
	check(err)
	open := false
	check(mails.Run(ctx, func(ctx context.Context, job *jobs.Job[string]) error {
		if !open {
			open = true
			fmt.Println("the server is closed, attempt", job.Attempt())
			return job.Snooze(ctx, 20*time.Millisecond)
		}
		fmt.Println("sent, attempt", job.Attempt())
		cancel()
		return nil
	}))
	// Output:
	// the server is closed, attempt 1
	// sent, attempt 1
}

// What is urgent comes first, and a report that is asked for twice is made once.
func ExampleUnique() {
	ctx := context.Background()
	reports, err := jobs.New[string](rig.Client(), "example-reports", jobs.Config{})
	check(err)
	check(reports.EnsureTable(ctx))
	_, err = reports.Enqueue(ctx, "reports", "the month", jobs.Unique("month"), jobs.Priority(3), jobs.Timeout(time.Minute))
	check(err)
	_, err = reports.Enqueue(ctx, "reports", "the month", jobs.Unique("month"))
	var other *jobs.ExistsError
	fmt.Println("already there:", errors.As(err, &other), errors.Is(err, jobs.ErrExists))
	ids, err := reports.EnqueueMany(ctx, "reports", []string{"customer 1", "customer 2"}, jobs.Attempts(2))
	check(err)
	fmt.Println(len(ids), "more")
	job, err := reports.Next(ctx, "reports")
	check(err)
	fmt.Println("first:", job.Value())
	check(job.Done(ctx))
	// Output:
	// already there: true true
	// 2 more
	// first: customer 1
}

// A report is made every morning in Berlin, by one of all processes that run this.
func ExampleQueue_Periodic() {
	reports, err := jobs.New[string](rig.Client(), "example-periodic", jobs.Config{})
	check(err)
	mornings, err := jobs.Cron("CRON_TZ=Europe/Berlin 30 6 * * 1-5")
	check(err)
	reports.Periodic("morning report", mornings, func(tick time.Time) (string, string, error) {
		return "reports", tick.Format(time.DateOnly), nil
	})
	// reports.Run(ctx, handler) enqueues them, and handles them as any other job.
	fmt.Println(mornings)
	// Output:
	// CRON_TZ=Europe/Berlin 30 6 * * 1-5
}
