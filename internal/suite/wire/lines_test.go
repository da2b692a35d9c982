package wire

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
)

// ended is what a caller has got: its end, or an error.
type ended struct {
	end func(context.Context) error
	err error
}

// lineOperations are those of two callers of one process: the first has a turn or a
// permit, the second waits, and the first ends, then the second. They run in virtual time,
// in which it is certain that the second waits by then.
func lineOperations() []operation {
	queue := func(t *testing.T, client *dynamodb.Client, table string) *ticket.Queue {
		return rig.Must(ticket.New(client, table, ticket.Config{Lease: lease}))(t)
	}
	permits := func(t *testing.T, client *dynamodb.Client, table string) *semaphore.Semaphore {
		return rig.Must(semaphore.New(client, table, semaphore.Config{Lease: lease, Owner: "owner"}))(t)
	}
	return []operation{
		{name: "ticket: Done that draws for another of its process", prepare: func(t *testing.T, b *bench) func() error {
			rig.Is(t, queue(t, b.Client, b.Table).EnsureTable(t.Context()))
			return b.oneAfterTheOther(t, func(t *testing.T, client *dynamodb.Client) func() ended {
				q := queue(t, client, b.Table)
				return func() ended {
					turn, err := q.Lock(t.Context(), "order-7")
					return ended{turn.Done, err}
				}
			})
		}},
		{name: "semaphore: Permit.Release that passes it on to another of its process", prepare: func(t *testing.T, b *bench) func() error {
			rig.Is(t, permits(t, b.Client, b.Table).EnsureTable(t.Context()))
			return b.oneAfterTheOther(t, func(t *testing.T, client *dynamodb.Client) func() ended {
				s := permits(t, client, b.Table)
				return func() ended {
					permit, err := s.Acquire(t.Context(), resource)
					return ended{permit.Release, err}
				}
			})
		}},
	}
}

// oneAfterTheOther runs two callers, the second of which waits for the first.
func (b *bench) oneAfterTheOther(t *testing.T, open func(t *testing.T, client *dynamodb.Client) func() ended) func() error {
	return func() (err error) {
		b.InVirtualTime(t, 4, func(t *testing.T, network fault.Doer) {
			begin := open(t, rig.Client(rig.Over(network)))
			first, second := begin(), make(chan ended, 1)
			if err = first.err; err != nil {
				return
			}
			go func() { second <- begin() }()
			synctest.Wait()
			err = first.end(t.Context())
			next := <-second
			if err = errors.Join(err, next.err); next.err == nil {
				err = errors.Join(err, next.end(t.Context()))
			}
			synctest.Wait()
		})
		return err
	}
}
