package lock

import (
	"context"
	"math/rand/v2"

	"github.com/dynahold/dynahold/internal/ddb"
)

// leave is dequeue in the middle of a call, which goes on.
func (q *queued) leave(ctx context.Context) {
	giving, cancel := ddb.DetachedTimeout(ctx)
	defer cancel()
	q.dequeue(giving)
}

// dequeue takes the entry away and gives back what was handed to us meanwhile: the
// caller is told that it does not have the lock. It reports whether an answer tells that
// neither is there any more. ctx is one for giving back.
func (q *queued) dequeue(ctx context.Context) (freed bool) {
	res := q.vacate(ctx)
	if res.Outcome != ddb.Condition {
		return res.Outcome == ddb.Applied // without an answer: who is passed over costs the others a grace
	}
	l, err := q.Core.ParseRecord(res.Image)
	if err != nil {
		_, freed = q.locker.releaseUnused(ctx, q.Raw, q.id, false) // it may be ours: nobody can use it
		return freed
	}
	if _, ours := q.mine(res.Image, l); ours {
		return q.giveBack(ctx, res.Image, l)
	}
	return q.notEntered(res.Image)
}

// vacate takes the entry out of its place. A failed condition shows that it is not there, or
// has the lock, or has moved too often.
func (q *queued) vacate(ctx context.Context) (res ddb.Result) {
	moved := 0
	for n := range leaves {
		in, err := q.Core.Dequeue(q.Raw, q.id, max(q.place.Place-rand.IntN(moved+1), 0))
		if err != nil {
			return ddb.Result{Err: err}
		}
		if res = q.Core.Update(ctx, in, ddb.Options{NoGrace: true, Holding: true}); res.Outcome != ddb.Condition {
			return res
		}
		place, _, there := q.Core.ParseQueue(res.Image).Find(q.entry)
		if !there || !q.notTaken(res.Image) {
			return res
		}
		if n > 0 { // else it was seen longer ago than a trip
			moved = max(q.place.Place-place.Place, 0)
		}
		q.place = place // others have left the queue at its head
	}
	return res
}

// leaves bounds how often a place is asked for that has moved meanwhile. Where turns are as
// short as trips it moves with each of them: so every other request is for the place where
// it will be when the request arrives.
const leaves = 16
