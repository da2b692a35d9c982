package lock

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// Who leaves while the queue moves with each of its requests leaves no place behind, which
// would cost the others a grace.
func TestLeavingAQueueThatMoves(t *testing.T) {
	p := open(t, Config{Fair: true})
	h := p.take(t)
	heads := make([]string, 40)
	for i := range heads {
		heads[i] = fmt.Sprintf("%04d", i)
	}
	p.change(t, func(w *protocol.Write) {
		w.Set("lockQueue", queueOf(append([]string{stored.EntryOf(h.ID())}, heads...)...))
	})
	o := p.other(t)
	ctx, leave := context.WithCancel(t.Context())
	q := o.enqueue(ctx, t, Request{})
	moves := 0
	o.Faults(func(_ string, _ int, body []byte) fault.Kind {
		if bytes.Contains(body, []byte(`"NULL":true`)) {
			moves++
			_, item := p.record(t)
			list, _ := item["lockQueue"].(*types.AttributeValueMemberL)
			p.change(t, func(w *protocol.Write) {
				w.Set("lockQueue", &types.AttributeValueMemberL{Value: list.Value[1:]})
			})
		}
		return fault.None
	})
	leave()
	rig.Is(t, <-q.err, context.Canceled, repo.ErrLocked)
	_, item := p.record(t)
	for _, e := range p.Core.ParseQueue(item) {
		if e.ID[0] != '0' && e.ID != stored.EntryOf(h.ID()) {
			t.Errorf("after %d requests it stands there: %v", moves, item["lockQueue"])
		}
	}
	if moves < 2 {
		t.Errorf("the queue moved %d times", moves)
	}
}
