package ddb

import (
	"context"
	"fmt"
)

// Looked reads the item behind a write that was given up unjudged: what was answered is
// about the request that was answered, and says nothing of a copy that came before it. If
// the item does not stand as it was, the result is that of a failed condition which has met
// it, and of which an earlier attempt may have been applied. If it cannot be read, nobody
// knows. A write that was judged, or of which the caller cannot tell, is as it was.
func (t *Table) Looked(ctx context.Context, key Item, stands func(Item) bool, res Result) Result {
	if !res.Unjudged || stands == nil || res.Outcome != Refused && res.Outcome != Unknown {
		return res
	}
	ctx, cancel := WithGrace(ctx, Settle)
	defer cancel()
	read := t.Read(ctx, key, Options{Holding: true})
	switch {
	case read.Err != nil:
		return res.Unreadable()
	case !stands(read.Item):
		res.Outcome, res.Clean, res.Err, res.Again = Condition, false, nil, false
		res.Image, res.Images = read.Item, []Image{{Failed: true, Item: read.Item}}
	}
	return res
}

// Unreadable is the result of a write that was to be judged by the item, which cannot be
// read: most often for the same reason.
func (r Result) Unreadable() Result {
	r.Outcome, r.Clean, r.Unread = Unknown, false, true
	r.Err = fmt.Errorf("%w; nor could the item be read", r.Err)
	return r
}
