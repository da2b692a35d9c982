package semaphore

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// Acquire takes a permit of a resource, waiting as long as ctx allows. One
// request if one is free, one more per try. ErrBusy, with *BusyError, if the
// waiting ended first. A resource that nobody has used is registered.
//
// Callers of this Semaphore are served in order, and get the permit of one that is
// released without a request of their own. Over processes waiting is not in order: package
// ticket has a queue. ctx governs the waiting,
// never the holding.
func (s *store) Acquire(ctx context.Context, resource string) (*Permit, error) {
	return s.takePermit(ctx, "Acquire", resource, false)
}

// TryAcquire is Acquire without waiting. One request, one more if it comes
// across permits whose holders are dead.
func (s *store) TryAcquire(ctx context.Context, resource string) (*Permit, error) {
	return s.takePermit(ctx, "TryAcquire", resource, true)
}

// Do runs fn while it holds a permit of a resource. The context of fn ends with
// ctx, and, with the cause, when the permit is lost.
func (s *store) Do(ctx context.Context, resource string, fn func(ctx context.Context, p *Permit) error) error {
	return lease.Do(ctx, func(ctx context.Context) (*Permit, error) { return s.Acquire(ctx, resource) }, fn, (*Permit).Release)
}

func (s *store) takePermit(ctx context.Context, operation, resource string, once bool) (_ *Permit, err error) {
	if err := s.checkName(resource); err != nil {
		return nil, err
	}
	ctx, told := s.core.Observe.Call(ctx, telemetry.Permit, operation)
	told.Key(func() string { return resource })
	defer told.End(&err)
	ctx, end, err := s.open.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	h, err := s.acquire(ctx, resource, once)
	if err == nil {
		err = s.unlessClosed(h)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// permitID is short, for every request on the resource bills it: 71 bits. It begins with
// a letter: a command takes what begins with a dash for a flag.
func permitID() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	b[0] &= 0x7f
	return permitPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

func (s *store) acquire(ctx context.Context, name string, once bool) (*Permit, error) {
	attr, backoff := permitID(), s.lease.Pause
	grace, cancel := ddb.WithGrace(ctx, ddb.Cleanup) // for what must be given back when ctx has ended
	defer cancel()
	began, clean := time.Now(), true
	var last *Resource // what the last try found
	var place *caller  // in the line of this process
	if !once {
		place = s.join(name, attr)
		defer place.leaves()
	}
	failed := func(err error) (*Permit, error) {
		if !clean {
			s.releaseUnanswered(grace, name, attr)
		}
		if last != nil && ctx.Err() != nil && !errors.Is(err, ErrBusy) {
			err = ddb.Join(last.busy(), err)
		}
		return nil, err
	}
	for try := 1; ; try++ {
		if place != nil {
			got, err := place.turn(ctx)
			clean = clean && !place.unsure
			if err != nil {
				return failed(ddb.Join(place.busy(), ddb.Waited(time.Since(began), err)))
			}
			if got != nil {
				return got.begin(ctx)
			}
		}
		asked := time.Now() // before the end is reckoned: the deadline counts from here
		in, until := s.take(name, attr)
		// The same id in all tries: whichever of them was applied, it is ours,
		// and a second one cannot be.
		res := s.core.Update(ctx, in, ddb.Options{AwaitAnswer: true, OnItem: true, Holding: true})
		sure := clean && res.Clean
		clean = sure && res.Outcome != ddb.Applied
		if res.Outcome == ddb.Refused && ddb.Conflicted(res.Err) && ctx.Err() == nil {
			ddb.Sleep(ctx, backoff.Next(s.clock(), time.Time{})) // a job of the resource changed it
			continue
		}
		if res.Outcome != ddb.Applied && res.Outcome != ddb.Condition {
			return failed(fmt.Errorf("resource %q: no permit: %w", name, res.Err))
		}
		r, err := parseResource(name, res.Shown(), s.cfg)
		if _, ours := r.permits[attr]; ours && err == nil {
			s.adopt(grace, r)
			held := s.newPermit(name, attr, r.token, asked, until)
			held.once, held.found = sure, res.Outcome != ddb.Applied
			s.took(r, held)
			return held.begin(ctx)
		}
		if err != nil {
			return failed(err)
		}
		last = &r
		switch removed, err := s.removeExpired(ctx, r); {
		case err != nil:
			return failed(err)
		case removed:
			ddb.Sleep(ctx, s.cfg.Wait.Min)
			continue
		case once || s.cfg.Wait.Attempts > 0 && try >= s.cfg.Wait.Attempts:
			return failed(r.busy())
		}
		place.refused(r, backoff.Next(s.clock(), time.Time{}), !clean)
	}
}

// take is the request for a permit, and the end that it writes.
func (s *store) take(name, attr string) (in *dynamodb.UpdateItemInput, until time.Time) {
	now := s.clock()
	until = now.Add(s.cfg.Lease)
	w := s.core.NewWrite()
	register(w, s.cfg)
	count(w, aRunning, 1)
	count(w, aChanges, 1)
	s.nextToken(w, now)
	w.Set(attr, ddb.Number(ddb.Seconds(until)))
	if s.cfg.NamePermits {
		w.Set(ownerAttr(attr), protocol.Sign(now, s.cfg.Owner))
	}
	w.IfAbsent(attr)
	s.ifRoom(w, " < ")
	in = update(w, resourceKey(name))
	in.ReturnValues = types.ReturnValueAllNew
	return in, until
}

// nextToken gives out the next fencing token of a resource.
func (s *store) nextToken(w *protocol.Write, now time.Time) {
	w.SetTo(aToken, "if_not_exists("+w.Name(aToken)+", "+w.Value(ddb.Integer(now.UnixMicro()))+") + "+w.Value(ddb.Integer(1)))
}

// ifRoom demands that what runs compares to the limit: to that which SetLimit has
// set, or else to this program's own, or else to that of the row. Numbers that
// nobody can have counted let nobody in.
func (s *store) ifRoom(w *protocol.Write, compares string) {
	zero := w.Value(ddb.Integer(0))
	running, limit := w.Name(aRunning), w.Name(aLimit)
	below := running + compares + limit + " AND " + limit + " <= " + w.Value(ddb.Integer(maxCount))
	if s.cfg.Limit != 0 {
		fixed := w.Name(aFixed)
		below = "(attribute_exists(" + fixed + ") AND " + below + " OR attribute_not_exists(" + fixed + ") AND " + running + compares + w.Value(ddb.Integer(int64(s.cfg.Limit))) + ")"
	}
	w.If("(attribute_not_exists(" + running + ") OR " + running + " >= " + zero + " AND " + below + ")")
	token := w.Name(aToken)
	w.If("(attribute_not_exists(" + token + ") OR " + token + " BETWEEN " + zero + " AND " + w.Value(ddb.Integer(maxToken-1)) + ")")
}

// adopt tells the row this program's limit where it has another, once for each
// process: for programs that have none of their own, and for those who look. That
// nobody has called SetLimit is in its condition, and nothing depends on it.
func (s *store) adopt(ctx context.Context, r Resource) {
	if r.fixed || r.stored == r.Limit {
		return
	}
	if s.station(r.Name).adopted.Swap(true) {
		return
	}
	w := s.core.NewWrite()
	w.Set(aLimit, ddb.Integer(int64(r.Limit)))
	w.IfEqual(aLimit, ddb.Integer(int64(r.stored)))
	w.IfAbsent(aFixed)
	s.write(ctx, r.Name, w, ddb.Options{NoGrace: true})
}
