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
	"github.com/dynahold/dynahold/internal/resources"
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
func (s *Semaphore) Acquire(ctx context.Context, resource string) (*Permit, error) {
	return s.takePermit(ctx, "Acquire", resource, false)
}

// TryAcquire is Acquire without waiting. One request, one more if it comes
// across permits whose holders are dead.
func (s *Semaphore) TryAcquire(ctx context.Context, resource string) (*Permit, error) {
	return s.takePermit(ctx, "TryAcquire", resource, true)
}

// Do runs fn while it holds a permit of a resource. The context of fn ends with
// ctx, and, with the cause, when the permit is lost: an error of the release alone is
// repo.ErrDone too. An Acquire of the same resource inside fn, with its context, is ErrNested
// if the limit is used up by what that holds.
func (s *Semaphore) Do(ctx context.Context, resource string, fn func(ctx context.Context, p *Permit) error) error {
	return lease.Do(ctx, func(ctx context.Context) (*Permit, error) { return s.Acquire(ctx, resource) }, (*Permit).inside, fn, (*Permit).Release)
}

func (s *Semaphore) takePermit(ctx context.Context, operation, resource string, once bool) (_ *Permit, err error) {
	if err := s.table.CheckName(resource); err != nil {
		return nil, err
	}
	ctx, span := s.table.Core.Observe.Call(ctx, telemetry.Permit, operation, func() string { return resource })
	defer span.End(&err)
	ctx, end, err := s.open.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	h, err := s.acquire(ctx, resource, once)
	if err == nil {
		err = h.unlessClosed()
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
	return resources.PermitPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// acquisition is one call for a permit, over all its tries.
type acquisition struct {
	s          *Semaphore
	name, attr string
	place      *caller         // in the line of this process; nil: it stands in none
	grace      context.Context // for what must be given back when the call's own has ended
	began      time.Time
	backoff    ddb.Backoff
	last       *resources.Row // what the last try found
	doubtful   bool           // a try that had no answer may have taken the permit
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

func (s *Semaphore) acquire(ctx context.Context, name string, once bool) (*Permit, error) {
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
			ddb.Sleep(ctx, a.backoff.Next(s.table.Clock(), time.Time{}))
			continue
		}
		switch removed, err := s.table.RemoveExpired(ctx, *a.last); {
		case err != nil:
			return nil, a.failed(ctx, err)
		case removed:
			ddb.Sleep(ctx, s.cfg.Wait.Min)
			continue
		case once || s.cfg.Wait.Attempts > 0 && try >= s.cfg.Wait.Attempts:
			return nil, a.failed(ctx, busy(*a.last))
		}
		a.place.refused(*a.last, a.backoff.Next(s.table.Clock(), time.Time{}), a.doubtful)
	}
}

// turn waits until the call may ask at the table: then it returns nothing. Or it has been
// passed a permit. A try may have shown that the call would wait for itself.
func (a *acquisition) turn(ctx context.Context) (*Permit, error) {
	if a.place == nil {
		return nil, nil
	}
	if err := a.s.refuseNested(ctx, a.name); err != nil {
		return nil, a.failed(ctx, err)
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
	res := s.table.Core.Update(ctx, s.take(a.name, a.attr), ddb.Options{
		AwaitAnswer: true, OnItem: true, Holding: true, Stands: func(row ddb.Item) bool { return row[a.attr] == nil },
	})
	r, unread := s.table.Parse(a.name, res.Shown())
	mine, ours := r.Permits[a.attr]
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
	s.table.Adopt(a.grace, r)
	// Its end may be that of an earlier try, and later, where the clock was set back since.
	held := s.newPermit(a.name, a.attr, r.Token, asked, mine.Until)
	held.once, held.found = !doubtful, verdict == takenEarly
	s.took(r, held)
	return held, verdict, nil
}

// failed ends the call with an error, and gives back what a try may have taken.
func (a *acquisition) failed(ctx context.Context, err error) error {
	if a.doubtful {
		a.s.releaseUnanswered(a.grace, a.name, a.attr)
	}
	last := a.last
	if last == nil && a.place != nil { // its turn came with the end of its context
		a.place.leaves() // with what others in the line have seen
		last = a.place.seen
	}
	if last != nil && ctx.Err() != nil && !errors.Is(err, ErrBusy) {
		err = ddb.Join(busy(*last), err)
	}
	return err
}

// take is the request for a permit.
func (s *Semaphore) take(name, attr string) *dynamodb.UpdateItemInput {
	now := s.table.Clock()
	w := s.table.Core.NewWrite()
	s.table.Take(w, now)
	w.Set(attr, ddb.Number(ddb.Seconds(now.Add(s.cfg.Lease))))
	if s.cfg.NamePermits {
		w.Set(resources.OwnerAttr(attr), stored.Sign(now, s.cfg.Owner))
	}
	w.IfAbsent(attr)
	s.table.If(w, resources.ForOneMore)
	in := resources.Update(w, resources.Key(name))
	in.ReturnValues = types.ReturnValueAllNew
	return in
}
