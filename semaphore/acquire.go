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
	"github.com/dynahold/dynahold/repo"
)

// permitID is short, for every request on the resource bills it: 72 bits.
func permitID() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return permitPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

func (p *permits) acquire(ctx context.Context, name string, once bool) (*Permit, error) {
	attr, backoff := permitID(), ddb.Backoff{Min: p.cfg.Wait.Min, Max: p.cfg.Wait.Max}
	clean := true
	var last *Resource // what the last try found
	failed := func(err error) (*Permit, error) {
		p.undo(ctx, name, attr, clean)
		if last != nil && ctx.Err() != nil && !errors.Is(err, ErrBusy) {
			err = ddb.Because(last.busy(), err)
		}
		return nil, err
	}
	for try := 1; ; try++ {
		asked := time.Now() // before the end is reckoned: the deadline counts from here
		in, until, err := p.take(name, attr)
		if err != nil {
			return nil, repo.Classify(err)
		}
		// The same id in all tries: whichever of them was applied, it is ours,
		// and a second one cannot be.
		res := p.core.Update(ctx, in, ddb.Options{Timeout: p.cfg.Lease / 3, Taking: true, OnItem: true})
		clean = clean && res.Clean && res.Outcome != ddb.Applied
		if res.Outcome == ddb.Refused && ddb.Conflicted(res.Err) && ctx.Err() == nil {
			ddb.Pause(ctx, backoff.Next(p.clock(), time.Time{})) // a job of the resource changed it
			continue
		}
		if res.Outcome != ddb.Applied && res.Outcome != ddb.Condition {
			return failed(repo.Classify(fmt.Errorf("resource %q: no permit: %w", name, res.Err)))
		}
		row := res.Item
		if res.Outcome == ddb.Condition {
			row = res.Image
		}
		r, err := parseResource(name, row)
		if _, ours := r.permits[attr]; ours && err == nil {
			held := p.held(name, attr, r.token, asked, until)
			if res.Outcome == ddb.Applied {
				held.keep.Start()
				return held, nil
			}
			return held.fence(ctx)
		}
		if err == nil {
			err = r.check(p.cfg)
		}
		if err != nil {
			return failed(err)
		}
		last = &r
		if swept, err := p.sweep(ctx, r); err != nil || swept {
			if err != nil {
				return failed(err)
			}
			ddb.Pause(ctx, p.cfg.Wait.Min)
			continue
		}
		if once || p.cfg.Wait.Attempts > 0 && try >= p.cfg.Wait.Attempts {
			return failed(r.busy())
		}
		ddb.Pause(ctx, backoff.Next(p.clock(), time.Time{}))
		if ctx.Err() != nil {
			return failed(ddb.Because(r.busy(), ddb.CtxError(ctx)))
		}
	}
}

// take is the request for a permit, and the end that it writes.
func (p *permits) take(name, attr string) (*dynamodb.UpdateItemInput, time.Time, error) {
	now := p.clock()
	until := now.Add(p.cfg.Lease)
	w := p.core.NewWrite()
	register(w, p.cfg)
	count(w, aRunning, 1)
	count(w, aChanges, 1)
	p.nextToken(w, now)
	w.Set(attr, ddb.Number(ddb.Seconds(until)))
	w.IfAbsent(attr)
	w.If("(attribute_not_exists(" + w.Name(aRunning) + ") OR " + w.Name(aRunning) + " < " + w.Name(aLimit) + ")")
	in, err := w.Update(resourceKey(name))
	if in != nil {
		in.ReturnValues = types.ReturnValueAllNew
	}
	return in, until, err
}

// nextToken gives out the next fencing token of a resource.
func (p *permits) nextToken(w *ddb.Write, now time.Time) {
	w.SetTo(aToken, "if_not_exists("+w.Name(aToken)+", "+w.Value(ddb.Integer(now.UnixMicro()))+") + "+w.Value(ddb.Integer(1)))
}

// undo gives back a permit that a try without an answer may have taken.
func (p *permits) undo(ctx context.Context, name, attr string, clean bool) {
	if clean {
		return
	}
	ctx, cancel := ddb.Detached(ctx)
	defer cancel()
	if in, err := p.giveBack(name, attr); err == nil {
		p.core.Update(ctx, in, ddb.Options{NoSettle: true, Holding: true})
	}
}

func (p *permits) giveBack(name, attr string) (*dynamodb.UpdateItemInput, error) {
	w := p.core.NewWrite()
	w.Remove(attr)
	count(w, aRunning, -1)
	count(w, aChanges, 1)
	w.IfExists(attr)
	return w.Update(resourceKey(name))
}

// sweep removes the permits whose holders are dead. It reports whether it sent
// anything: the resource is then worth another look.
func (p *permits) sweep(ctx context.Context, r Resource) (bool, error) {
	w, n := p.core.NewWrite(), int64(0)
	for attr, end := range r.permits {
		if end.until.Add(p.cfg.ClockSkew).Before(p.clock()) && n < maxSweep {
			w.Remove(attr)
			w.IfEqual(attr, end.raw)
			n++
		}
	}
	if n == 0 {
		return false, nil
	}
	count(w, aRunning, -n)
	count(w, aChanges, 1)
	in, err := w.Update(resourceKey(r.Name))
	if err != nil {
		return false, repo.Classify(err)
	}
	// Whether we removed them or the resource changed meanwhile: a look tells.
	if res := p.core.Update(ctx, in, ddb.Options{}); res.Outcome == ddb.Refused {
		return false, repo.Classify(res.Err)
	}
	return true, nil
}

// maxSweep keeps the expression of a sweep within DynamoDB's limit.
const maxSweep = 50
