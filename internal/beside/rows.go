// Package beside is what an item remembers of ids of operations ([Remember]), and the rows
// beside it for those that it has no room for: what goes there is decided by [MoveFor], put
// by [Put], and asked for by [Entries].
package beside

import (
	"context"
	"fmt"
	"sync"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/protocol"
)

// atOnce is how many rows are put side by side.
const atOnce = 16

// Entries are what an item is to remember of an id that lies in a row beside it, to a writer
// in an epoch. It costs nothing where no such row can matter, and else one consistent read.
func Entries(ctx context.Context, core *protocol.Core, item ddb.Item, id protocol.OnceID, epoch int64) ([][]byte, error) {
	if !core.MarkAt(item, epoch).Beside(epoch) {
		return nil, nil
	}
	row, err := core.Get(ctx, RowOf(core, item, id))
	if err != nil {
		return nil, fmt.Errorf("ids of operations beside %s: %w", core.ItemName(core.KeyOf(core.Key(item))), err)
	}
	return InRow(core, item, row, epoch), nil
}

// Put puts the rows of a move. Each costs one write unit; whoever repeats that, because
// another one came first or an answer was lost, spoils nothing.
func Put(ctx context.Context, core *protocol.Core, move *Move) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, atOnce)
	var done sync.WaitGroup
	for _, row := range move.Rows {
		slots <- struct{}{}
		done.Go(func() {
			err := goroutine.ErrEnded // by the client, unless it is told otherwise
			defer func() {
				if <-slots; err != nil {
					cancel(err)
				}
			}()
			err = put(ctx, core, row)
		})
	}
	done.Wait()
	return context.Cause(ctx)
}

// put puts one row, or adds to the one that is there.
func put(ctx context.Context, core *protocol.Core, row Row) error {
	in, err := putting(core, row)
	for in != nil && err == nil {
		res := core.Update(ctx, in, ddb.Options{OnItem: true})
		switch res.Outcome {
		case ddb.Applied:
			return nil
		case ddb.Condition:
			in, err = joining(core, row, res.Image)
		default:
			return fmt.Errorf("ids of operations go to rows beside their item: %w", res.Err)
		}
	}
	return err
}
