package repo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// maxBatch is how many items DynamoDB reads with one request.
const maxBatch = 100

// GetMany reads items with consistent reads, each by itself: they may be of
// different moments (see txn for one). The result has one element for each key, in
// their order, nil where there is no item. An item of another type is an error, as of
// Get (*TypeError): its key was asked for. On an error nothing is returned, but where
// items cannot be read: then the others are, with the [*ItemError] of each. One
// request per 100 keys, one read unit per 4 KB of each item; what the service leaves
// over (16 MB a request, throttling) is asked for again, after pauses of up to
// 20 ms that double up to 1 s. ErrConfig if the client has no method BatchGetItem.
func (t *Table[T]) GetMany(ctx context.Context, keys ...Key) ([]*T, error) {
	found, err := t.m.getMany(ctx, keys)
	if found == nil {
		return nil, err
	}
	items := make([]*T, len(keys))
	for i := range items {
		items[i], _ = found[i].(*T)
	}
	return items, err
}

// getMany returns nil for what is not there.
func (t *mapping) getMany(ctx context.Context, keys []Key) ([]any, error) {
	client, ok := t.client.(ddb.BatchReader)
	if !ok {
		return nil, fmt.Errorf("%w: the client has no method BatchGetItem: give it that of *dynamodb.Client", ErrConfig)
	}
	wanted := make([]string, len(keys)) // the key of each, as a text
	var missing []map[string]types.AttributeValue
	found := map[string]ddb.Item{}
	for i, key := range keys {
		raw, err := t.EncodeKey(key)
		if err != nil {
			return nil, err
		}
		wanted[i] = t.core.KeyText(raw)
		if _, twice := found[wanted[i]]; !twice {
			found[wanted[i]] = nil
			missing = append(missing, raw)
		}
	}
	for len(missing) > 0 {
		n := min(len(missing), maxBatch)
		if err := t.getBatch(ctx, client, missing[:n], found); err != nil {
			return nil, err
		}
		missing = missing[n:]
	}
	items := make([]any, len(keys))
	var unread []error
	for i, text := range wanted {
		if err := t.core.CheckType(found[text]); err != nil {
			return nil, err
		}
		item, _, err := t.shown(found[text], false)
		if err != nil {
			unread = append(unread, err)
			continue
		}
		items[i] = item
	}
	return items, errors.Join(unread...)
}

// getBatch reads items until none is left over.
func (t *mapping) getBatch(ctx context.Context, client ddb.BatchReader, keys []map[string]types.AttributeValue, found map[string]ddb.Item) error {
	pause := ddb.Backoff{Min: 20 * time.Millisecond, Max: time.Second}
	for {
		items, left, err := t.core.Batch(ctx, client, keys)
		if err != nil {
			return err
		}
		for _, raw := range items {
			t.core.Saw(raw)
			found[t.core.KeyText(raw)] = raw
		}
		keys = left
		if len(left) == 0 {
			return nil
		}
		if len(items) == 0 {
			ddb.Sleep(ctx, pause.Next(time.Now(), time.Time{}))
		} else {
			pause = ddb.Backoff{Min: pause.Min, Max: pause.Max}
		}
		if err := ddb.CtxError(ctx); err != nil {
			return fmt.Errorf("%d of %d items of table %q were not read: %w", len(left), len(found), t.Name(), err)
		}
	}
}
