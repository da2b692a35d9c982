package transaction

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// verify makes sure that what a run has seen was there at one moment, where
// nothing is to be written. If it was not, it asks for another run.
func (c *call) verify(ctx context.Context, touched []*entry) error {
	seen := c.unconfirmed(touched)
	if len(seen) == 0 {
		return nil
	}
	moment := c.tick()
	images, err := c.readAll(ctx, seen)
	if err != nil {
		return err
	}
	var moved []*entry
	for i, e := range seen {
		if !lockless.AsRead(e.core, e.image, images[i]) {
			moved = append(moved, e)
			e.readAs(images[i], moment)
		}
		e.moment = moment
	}
	if len(moved) > 0 {
		return c.conflict(ctx, moved, nil)
	}
	return nil
}

// unconfirmed are items that a run has read, where those were not read at one moment.
func (c *call) unconfirmed(touched []*entry) (seen []*entry) {
	for _, e := range touched {
		if e.known && e.turn == nil && (e.blind == nil || e.seen) {
			seen = append(seen, e)
		}
	}
	if len(seen) == 0 || c.atOneMoment(seen) {
		return nil
	}
	return seen
}

// atOneMoment reports whether what was seen of items was read by one request, while
// every lock was held.
func (c *call) atOneMoment(seen []*entry) bool {
	moment := seen[0].moment
	for _, e := range seen {
		if e.moment != moment {
			return false
		}
	}
	for _, e := range c.held() {
		if e.moment.nth > moment.nth {
			return false
		}
	}
	return !moment.assumed()
}

// readAll reads items as they are at one moment.
func (c *call) readAll(ctx context.Context, entries []*entry) (images []ddb.Item, err error) {
	core := entries[0].core
	if len(entries) == 1 {
		image, err := core.Get(ctx, entries[0].raw)
		return []ddb.Item{image}, err
	}
	client, ok := core.Client.(ddb.TransactReader)
	if !ok {
		return nil, fmt.Errorf("%w: the client has no TransactGetItems: a transaction that reads several items needs it", repo.ErrNoTransactions)
	}
	var reads []types.TransactGetItem
	for _, e := range entries {
		reads = append(reads, e.core.GetOf(e.raw))
	}
	for {
		items, res := core.TransactGet(ctx, client, ddb.Options{Conflicts: true}, reads...)
		switch {
		case res.Err == nil:
			for i, e := range entries {
				e.core.Saw(items[i])
				if err := e.waiter.CheckShape(items[i]); err != nil {
					return nil, fail(e.failure(err))
				}
			}
			return items, nil
		case !ddb.Conflicted(res.Err):
			return nil, c.explain(ctx, coresOf(entries), res.Err)
		}
		if _, last := c.refused(); last {
			return nil, because(c.exhausted(entries), res.Err)
		}
		c.takePass(ctx)
		if c.sleep(ctx, len(entries)); ctx.Err() != nil {
			return nil, because(c.exhausted(entries), ddb.CtxError(ctx))
		}
	}
}

func coresOf(entries []*entry) (cores []*stored.Table) {
	for _, e := range entries {
		cores = append(cores, e.core.Table)
	}
	return cores
}

// explain says of a transaction that was refused as a whole whether a table has
// none. A request for each table, in that case only.
func (c *call) explain(ctx context.Context, cores []*stored.Table, err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "ValidationException" {
		return err
	}
	asked := map[string]bool{}
	for _, core := range cores {
		client, ok := core.Client.(repo.Client)
		if !ok || asked[core.Name] {
			continue
		}
		asked[core.Name] = true
		var out *dynamodb.DescribeTableOutput
		failed := core.ReadWith(ctx, "DescribeTable", func(ctx context.Context, o func(*dynamodb.Options)) (_ any, err error) {
			out, err = client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &core.Name}, o)
			return out, err
		})
		if failed == nil && out.Table.MultiRegionConsistency == types.MultiRegionConsistencyStrong {
			return fmt.Errorf("table %q is a global table with strong consistency, which has no transactions: two or more items need a table in one Region: %w", core.Name, err)
		}
	}
	return err
}
