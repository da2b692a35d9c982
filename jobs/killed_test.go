package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

// killer kills its own process at one of the transactions that move a schedule on.
type killer struct {
	next   fault.Doer
	left   int  // transactions until then
	before bool // the service sees it
}

// Do implements the SDK's HTTP client.
func (k *killer) Do(req *http.Request) (*http.Response, error) {
	body, err := fault.Body(req)
	if err != nil {
		return nil, err
	}
	hit := fault.Operation(req) == "TransactWriteItems" && bytes.Contains(body, []byte("SCHEDULES"))
	if hit {
		k.left--
	}
	if hit && k.left == 0 && k.before {
		return nil, die()
	}
	resp, err := k.next.Do(req)
	if hit && k.left == 0 {
		return nil, die()
	}
	return resp, err
}

func die() error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	time.Sleep(time.Minute)
	return fmt.Errorf("it lives: %w", err)
}

// ticksOf is the schedule of these tests.
func ticksOf(q *queue) {
	q.Periodic("tick", jobs.Every(time.Second).CatchUp(jobs.CatchUpAll), func(tick time.Time) (string, deploy, error) {
		return "ticks", deploy{N: int(tick.Unix())}, nil
	})
}

// tickUntilKilled is a process that has the schedule, and works on nothing.
func tickUntilKilled(args []string) error {
	left, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	client := rig.Client(func(o *dynamodb.Options) {
		o.HTTPClient = &killer{next: o.HTTPClient, left: left, before: args[1] == "before"}
	})
	q, err := jobs.New[deploy](client, args[0], jobs.Config{Lease: 3 * time.Second, Poll: 100 * time.Millisecond, Resources: map[string]int{"nothing": 1}})
	if err != nil {
		return err
	}
	ticksOf(q)
	return errors.Join(errors.New("it was not killed"), q.Run(context.Background(), func(context.Context, *jobs.Job[deploy]) error { return nil }))
}

// Processes that are killed while they start a tick, before the service has seen it or
// before its answer, leave none out, and none with two jobs.
func TestTicksOfKilledProcesses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.open(t, jobs.Config{Limit: 10})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				cmd := rig.Child(t, b.Table, []string{"before", "after"}[rand.IntN(2)], strconv.Itoa(1+rand.IntN(2)))
				if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.Exited() {
					t.Errorf("a process has ended: %v", err)
					return
				}
			}
		})
	}
	want := rig.Share(3, 60)
	rig.Await(t, "ticks come", func() bool {
		time.Sleep(100 * time.Millisecond)
		return rig.Must(q.Resource(t.Context(), "ticks"))(t).Queued >= want
	})
	cancel()
	all.Wait()
	audit(t, q)
	for before := 0; ; {
		j, err := q.Next(t.Context(), "ticks")
		if errors.Is(err, jobs.ErrNoWork) {
			return
		}
		rig.Is(t, err)
		if tick := j.Value().N; before > 0 && tick != before+1 {
			t.Errorf("behind tick %d comes %d", before, tick)
		}
		before = j.Value().N
		rig.Is(t, j.Done(t.Context()))
	}
}
