package unlocked

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// Update sends a write of the call, the one that it expects. Clean of the result is about
// everything that the call has sent and that is not settled.
func (t *Call) Update(ctx context.Context, in *dynamodb.UpdateItemInput, opt ddb.Options) ddb.Result {
	return t.send(ctx, opt, false, func(ctx context.Context, opt ddb.Options) ddb.Result { return t.Core.Update(ctx, in, opt) })
}

// Delete sends a delete of the call, as Update does a write.
func (t *Call) Delete(ctx context.Context, in *dynamodb.DeleteItemInput, opt ddb.Options) ddb.Result {
	return t.send(ctx, opt, true, func(ctx context.Context, opt ddb.Options) ddb.Result { return t.Core.Delete(ctx, in, opt) })
}

// send looks at the item where others write too: beside the write while it is late, and
// before it is sent again where it was throttled.
func (t *Call) send(ctx context.Context, opt ddb.Options, deletes bool, request func(context.Context, ddb.Options) ddb.Result) ddb.Result {
	began := time.Now()
	until, end := ctx, func() {}
	if t.Core.IsRaced(t.Raw) {
		opt.Judge = t
		until, end = t.beside(ctx)
	}
	res := func() ddb.Result {
		defer end() // also if the client panics
		return request(until, opt)
	}()
	if !res.Unjudged && (res.Outcome == ddb.Applied || res.Outcome == ddb.Condition) {
		t.Core.Took(time.Since(began))
	}
	return t.looked(ctx, t.sent(res), deletes)
}

// sent notes what came of a write of the call.
func (t *Call) sent(res ddb.Result) ddb.Result {
	t.Doubt.Sent(res.Clean)
	res.Clean = !t.Doubt.Open()
	return res
}

// looked reads the item behind a write that was given up unjudged, as [ddb.Table.Looked]
// does: what the process gets to see of the item tells of the write.
func (t *Call) looked(ctx context.Context, res ddb.Result, deletes bool) ddb.Result {
	if res.Outcome != ddb.Refused || !res.Unjudged {
		return res
	}
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	read := t.Core.Read(ctx, t.Raw, ddb.Options{Holding: true})
	v, image := t.Seen()
	switch {
	case v == protocol.Committed:
		return ddb.Result{Outcome: ddb.Applied, Item: image, Clean: res.Clean, Sent: res.Sent}
	case read.Err != nil:
		t.Doubt.Sent(false)
		return res.Unreadable()
	case deletes && t.Core.Absent(read.Item):
		res.Outcome = ddb.Unknown // by a copy of ours, or by others
		t.Doubt.Sent(false)
	}
	return res
}
