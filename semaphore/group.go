package semaphore

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// Every change of a job is a transaction that also changes the row of its
// resource, and DynamoDB refuses a transaction while another one is at the same
// row. So a process has one transaction at a time under way for each resource:
// what its callers want meanwhile goes together into the next one ("flat
// combining", Hendler, Incze, Shavit and Tzafrir, 2010; "group commit" of
// databases). Waiting for the one under way is a courtesy: each row keeps its
// condition, and one that has no answer for long is not waited for.

// change is what one caller wants: writes of rows of jobs, and what they do to
// the counters of the resource.
type change struct {
	writes                []types.TransactWriteItem
	size                  int // of the rows, in bytes
	queued, running, dead int64
	start                 *starting             // writes are those of a start, made anew for each transaction
	more                  func(*protocol.Write) // adds to the write of the resource; nil: nothing
}

// member is a change on its way.
type member struct {
	*change
	ctx     context.Context
	result  chan ddb.Result // has room for the one that comes
	flight  *flight         // guarded by station.mu: the transaction that it is part of
	left    bool            // guarded by station.mu: nobody waits for it
	unclean bool            // an earlier transaction with it may have been applied
}

// flight is a transaction under way, until all its members have an answer.
type flight struct {
	cancel context.CancelFunc
	there  int // guarded by station.mu: members that somebody waits for
}

const (
	maxWrites = 90                     // DynamoDB takes 100 in one transaction
	maxSize   = 2 << 20                // and 4 MB
	overtake  = 250 * time.Millisecond // how long a transaction under way is waited for
)

// submit sends a change, alone or together with others of the resource, as long
// as ctx allows. Its result is as if it were alone: Images has those of its own
// writes, and that of the resource behind them. A conflict with other
// transactions is no result: they are sent again.
func (s *store) submit(ctx context.Context, resource string, c *change) ddb.Result {
	st := s.enter(resource)
	defer s.leave(st)
	m := &member{change: c, ctx: ctx, result: make(chan ddb.Result, 1)}
	st.mu.Lock()
	st.waiting = append(st.waiting, m)
	if st.flights == 0 {
		s.launch(resource, st)
	}
	st.mu.Unlock()
	stuck := time.NewTimer(overtake)
	defer stuck.Stop()
	for {
		select {
		case res := <-m.result:
			return res
		case <-stuck.C:
			st.mu.Lock()
			if m.flight == nil {
				s.launch(resource, st)
			}
			st.mu.Unlock()
		case <-ctx.Done():
			select {
			case res := <-m.result: // which came at the same moment
				return res
			default:
			}
			if res, ok := st.withdraw(m); ok {
				return res
			}
			return <-m.result // it is cancelled and comes at once
		}
	}
}

// withdraw ends the waiting of a member. ok is false if its transaction was
// cancelled because of it: that has an answer at once.
func (st *station) withdraw(m *member) (res ddb.Result, ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	res = ddb.Result{Outcome: ddb.Unknown, Err: ddb.CtxError(m.ctx)}
	if m.flight == nil {
		st.waiting = slices.DeleteFunc(st.waiting, func(o *member) bool { return o == m })
		res.Outcome, res.Clean = ddb.Refused, true
		return res, true
	}
	m.left = true
	if m.flight.there--; m.flight.there > 0 {
		return res, true // others wait for it
	}
	m.flight.cancel()
	return res, false
}

// launch sends the changes that wait, in a transaction of their own. The caller
// holds mu.
func (s *store) launch(resource string, st *station) {
	if len(st.waiting) == 0 {
		return
	}
	f := &flight{}
	// The values are those of whoever came first.
	ctx, cancel := context.WithCancel(context.WithoutCancel(st.waiting[0].ctx))
	f.cancel = cancel
	members := st.board(f, nil)
	st.flights++
	go func() {
		defer cancel()
		ctx, told := s.core.Observe.Shared(ctx, telemetry.Job, "Combine")
		told.Key(func() string { return resource })
		defer told.End(new(error))
		s.send(ctx, resource, st, f, members, &told)
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.flights--; st.flights == 0 {
			s.launch(resource, st)
		}
	}()
}

// board adds those who wait to the members of a transaction, as many as it
// takes, and leaves out who has gone. One start is the most: the tokens of
// two would depend on each other. The caller holds mu.
func (st *station) board(f *flight, members []*member) []*member {
	members = slices.DeleteFunc(members, func(m *member) bool { return m.left })
	writes, size, starts := 0, 0, false
	for _, m := range members {
		writes, size, starts = writes+len(m.writes), size+m.size, starts || m.start != nil
	}
	st.waiting = slices.DeleteFunc(st.waiting, func(m *member) bool {
		fits := writes+m.count() <= maxWrites && size+m.size <= maxSize && (m.start == nil || !starts)
		if len(members) > 0 && !fits {
			return false
		}
		writes, size, starts = writes+m.count(), size+m.size, starts || m.start != nil
		m.flight = f
		f.there++
		members = append(members, m)
		return true
	})
	return members
}

// count is how many rows of jobs a change writes.
func (c *change) count() int {
	if c.start != nil {
		return len(c.start.rows)
	}
	return len(c.writes)
}

// send sends changes until each has a result.
func (s *store) send(ctx context.Context, resource string, st *station, f *flight, members []*member, told *telemetry.Call) {
	pause := ddb.Backoff{Min: s.cfg.Wait.Min, Max: s.cfg.Wait.Max}
	for conflicts := 0; len(members) > 0; {
		writes, err := s.merge(resource, members)
		if err != nil {
			for _, m := range members {
				m.result <- ddb.Result{Outcome: ddb.Refused, Clean: !m.unclean, Err: err}
			}
			return
		}
		opt := ddb.Options{NoGrace: true, Conflicts: true, Holding: true}
		res := s.core.Transact(ctx, s.client, opt, writes...)
		if res.Outcome == ddb.Refused && ddb.Conflicted(res.Err) && ctx.Err() == nil {
			if conflicts++; conflicts >= 2 {
				members = slices.DeleteFunc(members, func(m *member) bool {
					yields := m.start != nil && m.start.yields && !m.unclean
					if yields {
						m.result <- res
					}
					return yields
				})
			}
			ddb.Sleep(ctx, pause.Next(time.Now(), time.Time{}))
			st.mu.Lock()
			gone := slices.DeleteFunc(slices.Clone(members), func(m *member) bool { return !m.left })
			members = st.board(f, members)
			st.mu.Unlock()
			for _, m := range gone {
				m.result <- ddb.Result{} // nobody waits for it
			}
			continue
		}
		if res.Outcome == ddb.Refused && res.Err != nil {
			res.Err = s.explain(ctx, res.Err)
		}
		if res.Outcome == ddb.Applied {
			s.core.Observe.Batch(ctx, telemetry.Job, len(members))
			for _, m := range members {
				told.Link(m.ctx)
			}
		}
		again, alone := settle(members, res)
		if !alone {
			members = again
			continue
		}
		for _, m := range again {
			s.send(ctx, resource, st, f, []*member{m}, told)
		}
		return
	}
}

// settle gives members their results. again are those whose change was not to
// blame that nothing was written; alone says that each should be sent by itself,
// for which of them was to blame is not known.
func settle(members []*member, res ddb.Result) (again []*member, alone bool) {
	at, last := 0, len(res.Images)-1
	for _, m := range members {
		own := at
		at += m.count()
		mine := res
		mine.Clean = res.Clean && !m.unclean
		innocent := len(members) > 1 && res.Outcome == ddb.Refused
		if res.Outcome == ddb.Condition && last >= at {
			mine.Images = append(slices.Clone(res.Images[own:at]), res.Images[last])
			failed := slices.ContainsFunc(res.Images[own:at], func(i ddb.Image) bool { return i.Failed })
			innocent = len(members) > 1 && !failed && (m.start == nil || !res.Images[last].Failed)
		}
		if !innocent {
			m.result <- mine
			continue
		}
		m.unclean = !mine.Clean
		again = append(again, m)
	}
	return again, len(again) == len(members)
}

// merge is the transaction of some changes.
func (s *store) merge(resource string, members []*member) (writes []types.TransactWriteItem, err error) {
	w := s.core.NewWrite()
	var sum change
	for _, m := range members {
		if m.start != nil {
			if m.writes, err = m.start.prepare(s); err != nil {
				return nil, err
			}
			sum.start = m.start
		}
		sum.queued, sum.running, sum.dead = sum.queued+m.queued, sum.running+m.running, sum.dead+m.dead
		if m.more != nil {
			m.more(w)
		}
		if m.running < 0 {
			sum.size-- // how many permits and jobs end
		}
		writes = append(writes, m.writes...)
	}
	for _, c := range []struct {
		attr string
		n    int64
	}{{aQueued, sum.queued}, {aRunning, sum.running}, {aDead, sum.dead}} {
		if c.n != 0 {
			count(w, c.attr, c.n)
		}
	}
	count(w, aChanges, 1)
	if sum.size < 0 {
		w.IfExists(aRunning)
	}
	if sum.start != nil {
		sum.start.resource(w, sum.running)
	}
	in, err := w.Update(resourceKey(resource))
	if err != nil {
		return nil, err
	}
	return append(writes, ddb.UpdateOf(in)), nil
}
