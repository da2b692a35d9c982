package ticket

import (
	"crypto/rand"
	"encoding/base64"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/stored"
)

// keep is how long after the last entry's end DynamoDB's TTL may remove the
// item. It is not less than the longest lease, so that nobody's TTL can be
// earlier than another's end.
const keep = 24 * time.Hour

// newID identifies an entry among those of its queue.
func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// request finishes a write; shows is the item that its answer shows, if any. What one
// write does is bounded, and so are its expressions: they are never too long.
func request(w *ddb.Write, p place, shows types.ReturnValue) *dynamodb.UpdateItemInput {
	in, _ := w.Update(p.raw)
	in.ReturnValues = shows
	return in
}

// enter draws a ticket and stands in the queue, in one step: nobody can see
// the number without the entry. The floor makes numbers grow even when the
// item is deleted and made anew. alone demands an empty queue.
func (q *Queue) enter(p place, id string, now, until time.Time, alone bool) *dynamodb.UpdateItemInput {
	w := q.core.NewWrite()
	one, count := w.Value(ddb.Integer(1)), w.Name(attrCount)
	zero := w.Value(ddb.Integer(0))
	number := "if_not_exists(" + w.Name(attrNext) + ", " + w.Value(ddb.Integer(now.UnixMicro())) + ") + " + one
	w.SetTo(attrTicket+id, number)
	w.SetTo(attrNext, number)
	w.SetTo(attrCount, "if_not_exists("+count+", "+zero+") + "+one)
	q.setEnd(w, id, until)
	q.describe(w, id, now)
	w.IfAbsent(attrTicket + id)
	// A number that no protocol has left there would go on into the ticket.
	most := w.Value(ddb.Integer(maxTicket - 1))
	w.If("(attribute_not_exists(" + w.Name(attrNext) + ") OR " + w.Name(attrNext) + " BETWEEN " + zero + " AND " + most + ")")
	if alone {
		w.If("(attribute_not_exists(" + count + ") OR " + count + " = " + zero + ")")
	} else {
		w.If("(attribute_not_exists(" + count + ") OR " + count + " BETWEEN " + zero + " AND " + most + ")")
	}
	return request(w, p, types.ReturnValueAllNew)
}

// renewal moves the end of an entry; it never moves it back.
func (q *Queue) renewal(t *Ticket, until time.Time) *dynamodb.UpdateItemInput {
	w := q.core.NewWrite()
	q.setEnd(w, t.id, until)
	w.IfEqual(attrTicket+t.id, ddb.Integer(t.number))
	w.If(w.Name(attrBeat+t.id) + " < " + w.Value(ddb.Number(ddb.Seconds(until))))
	return request(w, t.place, types.ReturnValueAllNew)
}

// setEnd gives an entry its end, and the item one that is later, or none.
func (q *Queue) setEnd(w *ddb.Write, id string, until time.Time) {
	w.Set(attrBeat+id, ddb.Number(ddb.Seconds(until)))
	q.keepUntil(w, until)
}

// keepUntil says until when the item is needed at least. Where clocks may be wrong by more than
// keep, it stays: it would be due while its turn is held.
func (q *Queue) keepUntil(w *ddb.Write, until time.Time) {
	if q.cfg.Clockless {
		w.Remove(q.core.Attr.TTL)
		return
	}
	w.Set(q.core.Attr.TTL, ddb.Integer(until.Add(keep).Unix()))
}

// describe adds to an entry whose it is, and how long its lease is, where that is not
// the default: every request on the queue bills what entries say.
func (q *Queue) describe(w *ddb.Write, id string, now time.Time) {
	if q.cfg.Owner != "" {
		w.Set(attrOwner+id, stored.Sign(now, q.cfg.Owner))
	}
	if q.cfg.Lease != settings.DefaultLease {
		w.Set(attrLease+id, ddb.Number(ddb.LeaseSeconds(q.cfg.Lease)))
	}
}

// removal takes an own entry away, and leaves its number as evidence that its
// owner did. In the same step those enter whom it takes along, in their order. As a
// number never comes again, a copy of the request cannot let them in once more.
func (q *Queue) removal(t *Ticket, e ending) *dynamodb.UpdateItemInput {
	w := q.core.NewWrite()
	q.removeOwn(w, t.id)
	count(w, len(e.newcomers)-1)
	number := ddb.Integer(t.number)
	w.Set(attrLeft, number)
	w.IfEqual(attrTicket+t.id, number)
	if len(e.newcomers) > 0 {
		q.enterTogether(w, e)
	}
	if len(e.newcomers) > 0 || e.told {
		return request(w, t.place, types.ReturnValueAllNew)
	}
	return request(w, t.place, "")
}

// enterTogether lets callers enter with a request that removes an entry: the item, and the
// last number that was drawn, are there.
func (q *Queue) enterTogether(w *ddb.Write, e ending) {
	next, count := w.Name(attrNext), w.Name(attrCount)
	for i, a := range e.newcomers {
		number := next + " + " + w.Value(ddb.Integer(int64(i+1)))
		w.SetTo(attrTicket+a.id, number)
		w.Set(attrBeat+a.id, ddb.Number(ddb.Seconds(e.until)))
		q.describe(w, a.id, e.now)
		w.IfAbsent(attrTicket + a.id)
		if i == len(e.newcomers)-1 {
			w.SetTo(attrNext, number)
		}
	}
	q.keepUntil(w, e.until)
	zero, most := w.Value(ddb.Integer(0)), w.Value(ddb.Integer(maxTicket-int64(len(e.newcomers))))
	w.If(next + " BETWEEN " + zero + " AND " + most)
	w.If(count + " BETWEEN " + zero + " AND " + most)
}

// removalByID takes an entry away whose number is not known. Its answer shows
// the queue with the entry.
func (q *Queue) removalByID(p place, id string) *dynamodb.UpdateItemInput {
	w := q.core.NewWrite()
	q.removeOwn(w, id)
	count(w, -1)
	w.IfExists(attrTicket + id)
	return request(w, p, types.ReturnValueAllOld)
}

// removeOwn takes away whatever this queue may have made of an own entry.
func (q *Queue) removeOwn(w *ddb.Write, id string) {
	w.Remove(attrTicket+id, attrBeat+id, attrLease+id)
	if q.cfg.Owner != "" {
		w.Remove(attrOwner + id)
	}
}

// count counts entries that come, or go.
func count(w *ddb.Write, by int) {
	n, sign := int64(by), " + "
	if by < 0 {
		n, sign = -n, " - "
	}
	if by != 0 {
		w.SetTo(attrCount, w.Name(attrCount)+sign+w.Value(ddb.Integer(n)))
	}
}

// removeEntry removes an entry if it is just as it was seen.
func removeEntry(w *ddb.Write, e entry) {
	w.Remove(attrTicket+e.id, attrBeat+e.id)
	w.Remove(e.more...)
	w.IfEqual(attrTicket+e.id, e.ticket)
	w.IfEqual(attrBeat+e.id, e.beat)
}

// maxPass bounds how many entries one request passes over: expressions are
// limited in length and in operators.
const maxPass = 40

// passing removes stale entries, each if it is just as it was seen. own, if
// set, is who passes them over.
func (q *Queue) passing(p place, own *Ticket, stale []entry) *dynamodb.UpdateItemInput {
	w := q.core.NewWrite()
	for _, e := range stale {
		removeEntry(w, e)
	}
	count(w, -len(stale))
	if own != nil {
		w.IfEqual(attrTicket+own.id, ddb.Integer(own.number))
	}
	return request(w, p, types.ReturnValueAllNew)
}

// breaking removes an entry if it is just as it was seen, and leaves the evidence of it
// until its owner cannot believe in its turn any more: a day past its end, as the
// item itself.
func (q *Queue) breaking(p place, e entry, l line) *dynamodb.UpdateItemInput {
	w := q.core.NewWrite()
	removeEntry(w, e)
	count(w, -1)
	w.Set(brokenName(e.number), e.beat)
	old := l.settledBefore(q.clock().Add(-keep))
	if q.cfg.Clockless { // a clock that is ahead knows nothing of ends: the latest evidence stays
		old = old[:max(0, len(old)-maxPass)]
	}
	for _, number := range old[:min(len(old), maxPass)] {
		w.Remove(brokenName(number))
	}
	return request(w, p, "")
}
