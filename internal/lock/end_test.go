package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

var endings = map[Ending]string{Release: "release", Drop: "drop", Commit: "commit", Delete: "delete"}

func endAs(as Ending) End {
	e := End{As: as}
	if as == Commit {
		e.Change = setCount(2)
		e.Trace = func(image ddb.Item) protocol.Verdict {
			if count(image) == 2 {
				return protocol.Committed
			}
			return protocol.Lost
		}
	}
	return e
}

// Each way to end a lock, after what may befall the lock, through what may befall
// the request. The error is the whole truth about the item.
func TestEnd(t *testing.T) {
	type want map[Ending]error
	unknown := repo.ErrOutcomeUnknown
	for name, row := range map[string]struct {
		befalls func(t *testing.T, p *process, h *Lock)
		want    want // if the first answer arrives
		lost    want // if it is lost, or the request
	}{
		"held": {},
		"taken over": {
			befalls: func(t *testing.T, p *process, h *Lock) {
				o := p.other(t)
				o.ahead = 2 * time.Hour
				o.take(t)
			},
			want: want{Release: repo.ErrLockLost, Drop: repo.ErrLockLost, Commit: repo.ErrLockLost, Delete: repo.ErrLockLost},
		},
		"broken": {
			befalls: func(t *testing.T, p *process, h *Lock) {
				rig.Is(t, p.other(t).Break(t.Context(), key, raw, h.Token()))
			},
			want: want{Release: repo.ErrLockLost, Drop: repo.ErrLockLost, Commit: repo.ErrLockLost, Delete: repo.ErrLockLost},
		},
		"its lease is over": { // by the clock that the commit names
			befalls: func(t *testing.T, p *process, h *Lock) { p.ahead = 2 * time.Hour },
			want:    want{Commit: repo.ErrLockExpired, Delete: repo.ErrLockExpired},
			lost:    want{Commit: unknown, Delete: unknown}, // it may arrive yet
		},
		"the item is gone": {
			befalls: func(t *testing.T, p *process, h *Lock) { p.delete(t) },
			want:    want{Release: repo.ErrLockLost, Drop: repo.ErrLockLost, Commit: unknown},
			lost:    want{Release: unknown, Commit: unknown}, // it may have been there until then
		},
	} {
		for as, ending := range endings {
			for _, kind := range []fault.Kind{fault.None, fault.DropRequest, fault.LoseResponse, fault.Error500After, fault.Throttle} {
				for _, fair := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%v/fair %v", name, ending, kind, fair), func(t *testing.T) {
						t.Parallel()
						p := open(t, Config{Fair: fair})
						h := p.take(t)
						if row.befalls != nil {
							row.befalls(t, p, h)
						}
						op := map[bool]string{true: "DeleteItem", false: "UpdateItem"}[as == Drop || as == Delete]
						p.Nth(op, 0, kind)
						_, before := p.record(t)
						_, err := h.End(t.Context(), endAs(as))
						want := row.want[as]
						if row.lost != nil && kind != fault.None && kind != fault.Throttle {
							want = row.lost[as]
						}
						if !errors.Is(err, want) {
							t.Fatalf("error %v, want %v", err, want)
						}
						l, after := p.record(t)
						switch {
						case want != nil || len(before) == 0:
							if !ddb.EqualItems(before, after) {
								t.Errorf("it has changed %v to %v", before, after)
							}
						case as == Drop || as == Delete:
							if after != nil {
								t.Errorf("left: %v", after)
							}
						case l.Busy() || count(after) != map[Ending]int64{Release: 1, Commit: 2}[as]:
							t.Errorf("left: %v", after)
						}
						if _, err := h.End(t.Context(), End{}); want == nil && err != nil {
							t.Errorf("a release after the end: %v", err)
						}
					})
				}
			}
		}
	}
}

// With LateCommit a lease that is over is no reason against a commit.
func TestEndLate(t *testing.T) {
	p := open(t, Config{LateCommit: true})
	h := p.take(t)
	p.ahead = 2 * time.Hour
	_, err := h.End(t.Context(), endAs(Commit))
	rig.Is(t, err)
}

// A change that refuses sends nothing, and the lock goes on.
func TestEndWithAChangeThatRefuses(t *testing.T) {
	p := open(t, Config{})
	h := p.take(t)
	no := errors.New("no")
	p.Count.Reset()
	_, err := h.End(t.Context(), End{As: Commit, Change: func(*protocol.Write) error { return no }})
	rig.Is(t, err, no)
	if p.Count.Total() != 0 || h.Over() {
		t.Errorf("%d requests; over: %v", p.Count.Total(), h.Over())
	}
	rig.Must(h.End(t.Context(), End{}))(t)
}

// A lock that is kept in the process is never free: the next one has the token
// after it, and ends it as any other.
func TestEndKeepsTheLock(t *testing.T) {
	for _, as := range []Ending{Release, Commit} {
		for _, kind := range []fault.Kind{fault.None, fault.LoseResponse, fault.DropRequest, fault.Resend} {
			p := open(t, Config{})
			h := p.take(t)
			p.Nth("UpdateItem", 0, kind)
			e := endAs(as)
			e.KeepLocal = true
			next, err := h.End(t.Context(), e)
			if err != nil || next == nil {
				t.Fatalf("%s, %v: %v, %v", endings[as], kind, next, err)
			}
			l, _ := p.record(t)
			if next.Token() != h.Token()+1 || l.By != next.ID() || l.Held != next.Token() || l.Token != next.Token()+1 || !h.Over() || next.Over() {
				t.Errorf("%s, %v: next has %s %d, stored is %+v", endings[as], kind, next.ID(), next.Token(), l)
			}
			_, err = next.End(t.Context(), endAs(Commit))
			rig.Is(t, err)
			if l, item := p.record(t); l.Busy() || count(item) != 2 {
				t.Errorf("%s, %v: left: %v", endings[as], kind, item)
			}
		}
	}
}

// A commit without a verdict may have kept the lock for the next one: that is
// known as an orphan, which can be released.
func TestEndWithoutAVerdictLeavesAnOrphan(t *testing.T) {
	p := open(t, Config{})
	h := p.take(t)
	e := endAs(Commit)
	e.KeepLocal = true
	next, err := h.End(p.endsAtUnsettled(t, fault.LoseResponse), e)
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	if l, _ := p.record(t); next != nil || h.Orphan() == nil || l.By != h.Orphan().id {
		t.Fatalf("next %v, orphan %v, stored is %+v", next, h.Orphan(), l)
	}
	p.Faults(nil)
	h.Orphan().Release()
	if l, item := p.record(t); l.Busy() || count(item) != 2 {
		t.Errorf("left: %v", item)
	}
}

// endsAtUnsettled is endsAt where no request after the end has an answer either.
func (p *process) endsAtUnsettled(t *testing.T, kind fault.Kind) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	p.Faults(func(string, int, []byte) fault.Kind {
		if ctx.Err() != nil {
			return fault.DropRequest
		}
		cancel()
		return kind
	})
	return ctx
}

// The release after a commit or a delete without a verdict tells what became of it. Where
// both were sent, or the lease was over, that the item is gone tells nothing. Nor does it
// tell anything that the lock is gone where the network has delivered the release twice.
func TestReleaseTellsOfWhatWasInDoubt(t *testing.T) {
	for _, row := range []struct {
		kind   fault.Kind
		writes []Ending
		late   bool
		want   protocol.Verdict
	}{
		{fault.LoseResponse, []Ending{Commit}, false, protocol.Committed},
		{fault.DropRequest, []Ending{Commit}, false, protocol.Lost},
		{fault.LoseResponse, []Ending{Delete}, false, protocol.Committed},
		{fault.DropRequest, []Ending{Delete}, false, protocol.Lost},
		{fault.LoseResponse, []Ending{Delete}, true, protocol.Undecided},
		{fault.DropRequest, []Ending{Delete, Delete}, false, protocol.Lost},
		{fault.LoseResponse, []Ending{Delete, Delete}, false, protocol.Committed},
		{fault.LoseResponse, []Ending{Commit, Delete}, false, protocol.Undecided},
		{fault.LoseResponse, []Ending{Delete, Commit}, false, protocol.Undecided},
	} {
		p := open(t, Config{})
		h := p.take(t)
		for i, as := range row.writes {
			_, err := h.End(p.endsAtUnsettled(t, row.kind), endAs(as))
			rig.Is(t, err, repo.ErrOutcomeUnknown)
			if i > 0 && row.want == protocol.Undecided {
				p.delete(t) // by others, once the lock was over
			}
		}
		p.Faults(nil)
		if row.late {
			h.Lease = lease.New(&p.lease, h, time.Now(), time.Now())
		}
		_, _ = h.End(t.Context(), End{})
		rig.Equal(t, h.OutcomeOfUndecided(), row.want, "%+v", row)
	}
	for kind, want := range map[fault.Kind]protocol.Verdict{fault.LoseResponse: protocol.Committed, fault.DropRequest: protocol.Lost} {
		p := open(t, Config{})
		h := p.take(t)
		_, err := h.End(p.endsAtUnsettled(t, kind), endAs(Commit))
		rig.Is(t, err, repo.ErrOutcomeUnknown)
		p.Faults(nil)
		p.Nth("UpdateItem", 0, fault.Resend)
		_, _ = h.End(t.Context(), End{})
		rig.Equal(t, h.OutcomeOfUndecided(), want, "the commit's %v", kind)
	}
}

// A second change after one without a verdict is one of two: that the lock is
// over does not tell which.
func TestOneOfTwoCommits(t *testing.T) {
	p := open(t, Config{})
	h := p.take(t)
	_, err := h.End(p.endsAtUnsettled(t, fault.LoseResponse), endAs(Commit))
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	p.Faults(nil)
	_, err = h.End(t.Context(), End{As: Commit, Change: setCount(3)})
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	if _, item := p.record(t); count(item) != 2 {
		t.Errorf("stored is %v", item)
	}
}

// What follows a commit without a verdict does not say "nothing was written" where
// the commit may have been applied, or may be yet.
func TestAfterACommitInDoubt(t *testing.T) {
	for name, row := range map[string]struct {
		commit  fault.Kind
		befalls func(t *testing.T, p *process)
		call    func(ctx context.Context, h *Lock) error
	}{
		"it may arrive yet; the next one is too late": {
			commit:  fault.DropRequest,
			befalls: func(_ *testing.T, p *process) { p.ahead = 2 * time.Hour },
			call:    func(ctx context.Context, h *Lock) error { _, err := h.End(ctx, endAs(Commit)); return err },
		},
		"it was applied, and the item deleted; the lock is extended": {
			commit:  fault.LoseResponse,
			befalls: func(t *testing.T, p *process) { p.delete(t) },
			call:    func(ctx context.Context, h *Lock) error { return h.Extend(ctx) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, Config{})
			h := p.take(t)
			_, err := h.End(p.endsAtUnsettled(t, row.commit), endAs(Commit))
			rig.Is(t, err, repo.ErrOutcomeUnknown)
			p.Faults(nil)
			row.befalls(t, p)
			rig.Is(t, row.call(t.Context(), h), repo.ErrOutcomeUnknown)
		})
	}
}

// The release by id: whose hold it is decides.
func TestReleaseByID(t *testing.T) {
	for _, drop := range []bool{false, true} {
		p := open(t, Config{})
		rig.Is(t, p.ReleaseByID(t.Context(), key, raw, "me#1", drop, false), repo.ErrNotHeld)
		h := p.take(t)
		rig.Is(t, p.ReleaseByID(t.Context(), key, raw, "me#1", drop, false), repo.ErrLocked)
		p.Nth(map[bool]string{true: "DeleteItem", false: "UpdateItem"}[drop], 0, fault.LoseResponse)
		rig.Is(t, p.ReleaseByID(t.Context(), key, raw, h.ID(), drop, false))
		if l, item := p.record(t); l.Busy() || drop != (item == nil) || !drop && l.Stolen != h.Token() {
			t.Errorf("drop %v: left: %v", drop, item)
		}
		_, err := h.End(t.Context(), End{}) // its handle finds out
		rig.Is(t, err, repo.ErrLockLost)
	}
}

// The break of a hold, by its token; what was extended meanwhile is broken too.
func TestBreak(t *testing.T) {
	for _, kind := range []fault.Kind{fault.None, fault.LoseResponse, fault.DropRequest, fault.Resend} {
		p := open(t, Config{})
		rig.Is(t, p.Break(t.Context(), key, raw, 1), repo.ErrNotHeld)
		h := p.take(t)
		rig.Is(t, p.Break(t.Context(), key, raw, h.Token()+1), repo.ErrNotHeld)
		p.Nth("UpdateItem", 0, kind)
		if err := p.Break(t.Context(), key, raw, h.Token()); err != nil && (kind != fault.Resend || !errors.Is(err, repo.ErrNotHeld)) {
			t.Errorf("%v: %v", kind, err)
		}
		if l, _ := p.record(t); l.Busy() || l.Stolen != h.Token() {
			t.Errorf("%v: stored is %+v", kind, l)
		}
		p.delete(t)
		rig.Is(t, p.Break(t.Context(), key, raw, h.Token()), repo.ErrNotHeld, repo.ErrNotFound)
	}
}
