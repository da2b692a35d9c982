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
	"github.com/dynahold/dynahold/internal/stored"
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

// acquisition is one call for a permit, over all its tries.
type acquisition struct {
	s          *store
	name, attr string
	place      *caller         // in the line of this process; nil: it stands in none
	grace      context.Context // for what must be given back when the call's own has ended
	began      time.Time
	backoff    ddb.Backoff
	last       *Resource // what the last try found
	doubtful   bool      // a try that had no answer may have taken the permit
}

// tryVerdict is what the answer to a try means.
type tryVerdict int

const (
	noPermit   tryVerdict = iota // all are out
	triedAgain                   // a job of the resource was just changing it
	noAnswer                     // or none that decides: the call ends
	unreadable                   // so does it where the row is not one of ours
	taken                        // by this try, and no other can bring the permit's attribute again
	takenTwice                   // by this try, but one before it may have been first, or may come yet
	takenEarly                   // by an earlier attempt, or a copy of it, which has drawn another token
)

// judgeTry tells them. conflicted says that a transaction was at the resource and the call
// may wait; ours that the row has the permit; doubtful that a try may have been applied
// that had no answer, this one included.
func judgeTry(outcome ddb.Outcome, conflicted, readable, ours, doubtful bool) tryVerdict {
	switch {
	case outcome == ddb.Refused && conflicted:
		return triedAgain
	case outcome != ddb.Applied && outcome != ddb.Condition:
		return noAnswer
	case !readable:
		return unreadable
	case ours && outcome == ddb.Condition:
		return takenEarly
	case ours && doubtful:
		return takenTwice
	case ours:
		return taken
	}
	return noPermit
}

func (s *store) acquire(ctx context.Context, name string, once bool) (*Permit, error) {
	grace, cancel := ddb.WithGrace(ctx, ddb.Cleanup)
	defer cancel()
	a := &acquisition{s: s, name: name, attr: permitID(), grace: grace, began: time.Now(), backoff: s.lease.Pause}
	if !once {
		a.place = s.join(name, a.attr)
		defer a.place.leaves()
	}
	for try := 1; ; try++ {
		got, err := a.turn(ctx)
		if got != nil || err != nil {
			return got, err
		}
		held, verdict, err := a.try(ctx)
		switch {
		case err != nil:
			return nil, a.failed(ctx, err)
		case held != nil:
			return held.begin(ctx)
		case verdict == triedAgain:
			ddb.Sleep(ctx, a.backoff.Next(s.clock(), time.Time{}))
			continue
		}
		switch removed, err := s.removeExpired(ctx, *a.last); {
		case err != nil:
			return nil, a.failed(ctx, err)
		case removed:
			ddb.Sleep(ctx, s.cfg.Wait.Min)
			continue
		case once || s.cfg.Wait.Attempts > 0 && try >= s.cfg.Wait.Attempts:
			return nil, a.failed(ctx, a.last.busy())
		}
		a.place.refused(*a.last, a.backoff.Next(s.clock(), time.Time{}), a.doubtful)
	}
}

// turn waits until the call may ask at the table: then it returns nothing. Or it has been
// passed a permit.
func (a *acquisition) turn(ctx context.Context) (*Permit, error) {
	if a.place == nil {
		return nil, nil
	}
	got, err := a.place.turn(ctx)
	a.doubtful = a.doubtful || a.place.unsure
	switch {
	case err != nil:
		return nil, a.failed(ctx, ddb.Join(a.place.busy(), ddb.Waited(time.Since(a.began), err)))
	case got != nil:
		return got.begin(ctx)
	}
	return nil, nil
}

// try asks at the table once. The same id in all tries: whichever of them was applied, it
// is ours, and a second one cannot be.
func (a *acquisition) try(ctx context.Context) (*Permit, tryVerdict, error) {
	s, asked := a.s, time.Now() // before the end is reckoned: the deadline counts from here
	in, until := s.take(a.name, a.attr)
	res := s.core.Update(ctx, in, ddb.Options{AwaitAnswer: true, OnItem: true, Holding: true})
	r, unread := parseResource(a.name, res.Shown(), s.cfg)
	_, ours := r.permits[a.attr]
	doubtful := a.doubtful || !res.Clean
	verdict := judgeTry(res.Outcome, ddb.Conflicted(res.Err) && ctx.Err() == nil, unread == nil, ours, doubtful)
	a.doubtful = doubtful || res.Outcome == ddb.Applied
	switch verdict {
	case triedAgain:
		return nil, verdict, nil
	case noAnswer:
		return nil, verdict, fmt.Errorf("resource %q: no permit: %w", a.name, res.Err)
	case unreadable:
		return nil, verdict, unread
	case noPermit:
		a.last = &r
		return nil, verdict, nil
	}
	s.adopt(a.grace, r)
	held := s.newPermit(a.name, a.attr, r.token, asked, until)
	held.once, held.found = !doubtful, verdict == takenEarly
	s.took(r, held)
	return held, verdict, nil
}

// failed ends the call with an error, and gives back what a try may have taken.
func (a *acquisition) failed(ctx context.Context, err error) error {
	if a.doubtful {
		a.s.releaseUnanswered(a.grace, a.name, a.attr)
	}
	if a.last != nil && ctx.Err() != nil && !errors.Is(err, ErrBusy) {
		err = ddb.Join(a.last.busy(), err)
	}
	return err
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
		w.Set(ownerAttr(attr), stored.Sign(now, s.cfg.Owner))
	}
	w.IfAbsent(attr)
	s.ifRoom(w, " < ")
	in = update(w, resourceKey(name))
	in.ReturnValues = types.ReturnValueAllNew
	return in, until
}

// nextToken gives out the next fencing token of a resource.
func (s *store) nextToken(w *ddb.Write, now time.Time) {
	w.SetTo(aToken, "if_not_exists("+w.Name(aToken)+", "+w.Value(ddb.Integer(now.UnixMicro()))+") + "+w.Value(ddb.Integer(1)))
}

// ifRoom demands that what runs compares to the limit: to that which SetLimit has
// set, or else to this program's own, or else to that of the row. Numbers that
// nobody can have counted let nobody in.
func (s *store) ifRoom(w *ddb.Write, compares string) {
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
