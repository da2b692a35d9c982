package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/resources"
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
	writes []types.TransactWriteItem
	size   int // of the rows, in bytes
	counts resources.Counts
	start  *starting        // makes the writes anew for each transaction; nil: it is none
	more   func(*ddb.Write) // adds to the write of the resource; nil: nothing

	givesWay bool            // it is given up where others are at the resource
	held     <-chan struct{} // guarded by localResource.mu: until then it waits for a start, to be sent with it; nil: it does not

	// Of one that is on its way.
	ctx     context.Context
	result  chan ddb.Result // has room for the one that comes
	flight  *flight         // guarded by localResource.mu: the transaction that it is part of
	left    bool            // guarded by localResource.mu: nobody waits for it
	unclean bool            // an earlier transaction with it may have been applied
	met     bool            // one has met another, which may have been a copy of it that the network made
	passed  bool            // one was given up unjudged, together with others
}

// clean reports whether no transaction with it can have been applied.
func (c *change) clean() bool { return !c.unclean && !c.met }

// flight is a transaction under way, until all its changes have an answer.
type flight struct {
	cancel context.CancelFunc
	there  int // guarded by localResource.mu: changes that somebody waits for
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
func (s *store) submit(ctx context.Context, resource string, c change) ddb.Result {
	return s.submitAll(ctx, resource, []change{c})[0]
}

// submitAll is submit for some changes, which are sent together as far as a transaction
// takes them.
func (s *store) submitAll(ctx context.Context, resource string, all []change) (results []ddb.Result) {
	st := s.localResource(resource)
	st.mu.Lock()
	for i := range all {
		c := &all[i]
		c.ctx, c.result = ctx, make(chan ddb.Result, 1)
		st.waiting = append(st.waiting, c)
	}
	if st.flights == 0 {
		s.launch(resource, st)
	}
	st.mu.Unlock()
	for i := range all {
		results = append(results, s.await(ctx, resource, st, &all[i]))
	}
	return results
}

// await waits for the result of a change that was handed in.
func (s *store) await(ctx context.Context, resource string, st *localResource, c *change) ddb.Result {
	stuck := time.NewTimer(overtake)
	defer stuck.Stop()
	held := c.held
	for {
		select {
		case res := <-c.result:
			return res
		case <-held:
			held = nil
			st.mu.Lock()
			if c.held = nil; c.flight == nil && st.flights == 0 {
				s.launch(resource, st)
			}
			st.mu.Unlock()
		case <-stuck.C: // so long it waits for a start at most, whichever of the two is seen first
			st.mu.Lock()
			if c.held = nil; c.flight == nil {
				s.launch(resource, st)
			}
			st.mu.Unlock()
		case <-ctx.Done():
			select {
			case res := <-c.result: // which came at the same moment
				return res
			default:
			}
			if res, ok := st.withdraw(c); ok {
				return res
			}
			return <-c.result // it is cancelled and comes at once
		}
	}
}

// submitFor is submit for a call of an operator, whose request is not given up in flight.
// stands reports whether the row of a key is as it was before.
func (s *store) submitFor(ctx context.Context, resource string, c change, key ddb.Item, stands func(ddb.Item) bool) ddb.Result {
	ctx, cancel := ddb.WithGrace(ctx, ddb.Cleanup)
	defer cancel()
	return s.table.Core.Looked(ctx, key, stands, s.submit(ctx, resource, c))
}

// wasMade reports whether a row is there that nothing but the change of a call makes, also
// where the caller has left meanwhile.
func (s *store) wasMade(ctx context.Context, key ddb.Item) bool {
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	made, err := s.table.Core.Get(ctx, key)
	return err == nil && len(made) > 0
}

// withdraw ends the waiting for a change. ok is false if its transaction was
// cancelled because of it: that has an answer at once.
func (st *localResource) withdraw(c *change) (res ddb.Result, ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	res = ddb.Result{Outcome: ddb.Unknown, Err: ddb.CtxError(c.ctx)}
	if c.flight == nil {
		st.waiting = slices.DeleteFunc(st.waiting, func(o *change) bool { return o == c })
		res.Outcome, res.Clean = ddb.Refused, true
		return res, true
	}
	c.left = true
	if c.flight.there--; c.flight.there > 0 {
		return res, true // others wait for it
	}
	c.flight.cancel()
	return res, false
}

// launch sends the changes that wait, in a transaction of their own, if one of them
// does not wait for another. The caller holds mu.
func (s *store) launch(resource string, st *localResource) {
	if len(st.waiting) == st.held() {
		return
	}
	// The values are those of whoever came first.
	ctx, cancel := context.WithCancel(context.WithoutCancel(st.waiting[0].ctx))
	f := &flight{cancel: cancel}
	all := st.board(f, nil)
	st.flights++
	go func() {
		defer cancel()
		ctx, span := s.table.Core.Observe.Shared(ctx, telemetry.Job, "Combine", func() string { return resource })
		defer span.End(new(error))
		s.send(ctx, resource, st, f, all, &span)
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.flights--; st.flights == 0 {
			s.launch(resource, st)
		}
	}()
}

// board adds the changes that wait to those of a transaction, as many as it
// takes, and leaves out those that nobody waits for. One start is the most: the tokens of
// two would depend on each other. The caller holds mu.
func (st *localResource) board(f *flight, all []*change) []*change {
	all = slices.DeleteFunc(all, func(c *change) bool { return c.left })
	writes, size, starts := 0, 0, false
	add := func(c *change) { writes, size, starts = writes+len(c.writes), size+c.size, starts || c.start != nil }
	for _, c := range all {
		add(c)
	}
	st.waiting = slices.DeleteFunc(st.waiting, func(c *change) bool {
		fits := writes+len(c.writes) <= maxWrites && size+c.size <= maxSize && (c.start == nil || !starts)
		if len(all) > 0 && !fits {
			return false
		}
		add(c)
		c.flight = f
		f.there++
		all = append(all, c)
		return true
	})
	return all
}

// send sends changes until each has a result.
func (s *store) send(ctx context.Context, resource string, st *localResource, f *flight, all []*change, span *telemetry.Call) {
	pause := s.table.Backoff()
	for len(all) > 0 {
		writes, err := s.merge(resource, all)
		if err != nil {
			for _, c := range all {
				c.result <- ddb.Result{Outcome: ddb.Refused, Clean: c.clean(), Err: err}
			}
			return
		}
		opt := ddb.Options{NoGrace: true, Conflicts: true, Holding: true}
		var res ddb.Result
		if ended := goroutine.Apart(func() { res = s.table.Core.Transact(ctx, s.client, opt, writes...) }); ended != nil {
			res = ddb.Result{Outcome: ddb.Unknown, Err: ended}
		}
		if res.Outcome == ddb.Refused && ddb.Conflicted(res.Err) && ctx.Err() == nil {
			if all = givenWay(all, res); len(all) == 0 {
				return // whoever comes next need not wait until this one would have tried again
			}
			// Another transaction takes as long as a request: who comes back sooner meets it again.
			ddb.Sleep(ctx, pause.Min+pause.Next(time.Now(), time.Time{}))
			all = st.reboard(f, all, res)
			continue
		}
		s.answered(ctx, all, &res, span)
		again, alone := settle(all, res)
		if !alone {
			all = st.holdAgain(f, again)
			continue
		}
		for _, c := range again {
			s.send(ctx, resource, st, f, []*change{c}, span)
		}
		return
	}
}

// givenWay answers changes that leave jobs to others, and notes of the other changes that
// they have met another transaction.
func givenWay(all []*change, res ddb.Result) []*change {
	all = slices.DeleteFunc(all, func(c *change) bool {
		left := c.givesWay && !c.unclean
		if left {
			c.result <- res
		}
		return left
	})
	for _, c := range all {
		c.met = true
	}
	return all
}

// reboard answers the changes that nobody waits for any more, and adds those that have
// come meanwhile. Where nobody is left it adds none: the transaction has been given up, and
// they have one of their own.
func (st *localResource) reboard(f *flight, all []*change, res ddb.Result) []*change {
	st.mu.Lock()
	gone := slices.DeleteFunc(slices.Clone(all), func(c *change) bool { return !c.left })
	if len(gone) < len(all) {
		all = st.board(f, all)
	} else {
		all = nil
	}
	st.mu.Unlock()
	for _, c := range gone {
		c.result <- ddb.Result{Outcome: ddb.Refused, Clean: !c.unclean, Unjudged: true, Err: ddb.Join(ddb.CtxError(c.ctx), res.Err)}
	}
	return all
}

// answered tells telemetry, and explains a refusal.
func (s *store) answered(ctx context.Context, all []*change, res *ddb.Result, span *telemetry.Call) {
	switch {
	case res.Outcome == ddb.Refused && res.Err != nil:
		res.Err = s.explain(ctx, res.Err)
	case res.Outcome == ddb.Applied:
		s.table.Core.Observe.Batch(ctx, telemetry.Job, len(all))
		for _, c := range all {
			span.Link(c.ctx)
		}
	}
}

// merge is the transaction of some changes.
func (s *store) merge(resource string, all []*change) (writes []types.TransactWriteItem, err error) {
	w := s.table.Core.NewWrite()
	var sum resources.Counts
	var start *starting
	ends := false // of permits or jobs
	for _, c := range all {
		if c.start != nil {
			start = c.start
			c.writes = c.start.prepare()
		}
		sum.Add(c.counts)
		if c.more != nil {
			c.more(w)
		}
		ends = ends || c.counts.Running < 0
		writes = append(writes, c.writes...)
	}
	s.table.Count(w, sum, ends)
	if start != nil {
		s.table.Start(w, start.r, start.token, start.token+int64(len(start.rows))-1, start.queued > 0, sum.Running)
	}
	in, err := w.Update(resources.Key(resource))
	if err != nil {
		return nil, err
	}
	return append(writes, ddb.UpdateOf(in)), nil
}
