package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// A schedule has a row that says which tick is next. Whoever sees that it has come enqueues
// its job in the transaction that moves the row on: so each tick has one job, and nobody
// waits for whoever began with one and died. The row has the text of the schedule. A program
// that has another one under the name writes its own when it begins, and the others leave
// the row alone, unless its tick is overdue.

const (
	schedulesKey = "SCHEDULES" // sort key: the name

	aSpec = "spec"
	aNext = "next" // N, Unix seconds: the tick that is next
	aLast = "last" // N, Unix seconds: the last one that has a job
)

// maxTicks is how many ticks of one schedule are made up for in one look.
const maxTicks = 100

// periodic is a schedule that this process has.
type periodic struct {
	name     string
	schedule Schedule
	job      func(tick time.Time) (resource string, value any, err error)

	look  time.Time // when to look at its row; zero: at once
	begun bool      // its row has had this text since the process began
}

// Periodic enqueues a job for every tick of a schedule, once over all processes whose Run has
// it under the name: with the look of a dispatcher that first sees that it has come, by its
// clock, so up to Config.ClockSkew early where that is ahead. It is called before Run; a
// second schedule of a name replaces the first. job says what is enqueued. It may be called
// several times for one tick, by several processes, and must have no effects; after an error,
// which is logged, it is called again within a lease, and the ticks behind it wait. While it
// does not return this process looks for no work; Run ends all the same.
//
// The first tick is the one that follows the first Run. Ticks that nobody saw are made up for
// as [Schedule.CatchUp] says. Where programs have different schedules under one name, that
// of the one that began last holds while it runs; when a tick of it is a minute late, another
// program takes the name over. Its row stays when no program has the name any more, until
// [Queue.ForgetSchedule]. A tick costs 6 write units, and each process that has it a read.
func (q *Queue[J]) Periodic(name string, schedule Schedule, job func(tick time.Time) (resource string, value J, err error)) {
	p := &periodic{name: name, schedule: schedule}
	if job != nil {
		p.job = func(tick time.Time) (string, any, error) { return job(tick) }
	}
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	q.s.periodics = append(slices.DeleteFunc(q.s.periodics, func(o *periodic) bool { return o.name == name }), p)
}

// checkPeriodics refuses schedules that make no sense.
func (s *store) checkPeriodics() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.periodics {
		if err := s.checkPeriodic(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) checkPeriodic(p *periodic) error {
	if p.name == "" || p.job == nil || p.schedule.next == nil {
		return fmt.Errorf("%w: the periodic job %q has no name, no schedule of at least a second, or no function", repo.ErrConfig, p.name)
	}
	if c := p.schedule.catchUp; c < CatchUpLast || c > CatchUpAll {
		return fmt.Errorf("%w: the periodic job %q has CatchUp(%d): use CatchUpLast, CatchUpNone or CatchUpAll", repo.ErrConfig, p.name, c)
	}
	_, err := s.table.Keys.EncodeKey(repo.Key{Partition: schedulesKey, Sort: p.name})
	return err
}

// tickAll enqueues the jobs of all schedules whose tick has come.
func (d *dispatcher) tickAll(ctx context.Context) {
	if d.s.ticking.Lock(ctx) != nil {
		return // a function of another Run does not return
	}
	defer d.s.ticking.Unlock()
	d.s.mu.Lock()
	all := slices.Clone(d.s.periodics)
	d.s.mu.Unlock()
	for _, p := range all {
		for n := 0; n < maxTicks && ctx.Err() == nil && !p.look.After(d.s.table.Clock()); n++ {
			if err := d.s.tick(ctx, p); err != nil && ctx.Err() == nil {
				p.look = d.s.table.Clock().Add(d.s.cfg.Lease / 3)
				d.s.table.Core.Observe.Event(ctx, slog.LevelError, telemetry.EventDispatcher, "enqueueing a periodic job", slog.String("schedule", p.name), slog.Any("error", err))
			}
		}
	}
}

// tick looks at the row of a schedule, and moves it on if its tick has come.
func (s *store) tick(ctx context.Context, p *periodic) error {
	if err := s.checkPeriodic(p); err != nil { // it has come since Run began
		return err
	}
	row, err := s.table.Core.Get(ctx, resources.RowKey(schedulesKey, p.name))
	if err != nil {
		return err
	}
	var from time.Time
	if len(row) > 0 {
		if from, err = ddb.Time(row[aNext]); err != nil {
			return fmt.Errorf("%w: schedule %q: attribute %q: %w", repo.ErrSchema, p.name, aNext, err)
		}
	}
	now, spec := s.table.Clock(), resources.Text(row, aSpec)
	const late = time.Minute
	switch {
	case len(row) == 0, spec != p.schedule.spec && (!p.begun || now.Sub(from) > late):
		p.begun = true
		return s.moveOn(ctx, p, row, p.schedule.next(now), time.Time{})
	case spec != p.schedule.spec:
		p.look = earlier(from.Add(late+time.Second), now.Add(late))
		return nil
	}
	p.begun = true
	if from.After(now) {
		p.look = from
		return nil
	}
	tick, next, some := p.schedule.due(from, now, max(s.cfg.Lease, 2*s.cfg.Poll)+s.cfg.ClockSkew)
	if !some {
		tick = time.Time{}
	}
	return s.moveOn(ctx, p, row, next, tick)
}

// moveOn moves the row of a schedule on, as it was read, and enqueues the job of a tick, if
// there is one.
func (s *store) moveOn(ctx context.Context, p *periodic, row ddb.Item, next, tick time.Time) error {
	if next.IsZero() {
		return fmt.Errorf("%w: schedule %q never comes again", repo.ErrConfig, p.schedule.spec)
	}
	moved := &ticked{s: s, p: p, row: row, next: next, tick: tick}
	if tick.IsZero() {
		w := s.table.Core.NewWrite()
		moved.write(w)
		res := s.table.Core.Update(ctx, resources.Update(w, resources.RowKey(schedulesKey, p.name)), ddb.Options{})
		return p.judge(res, next)
	}
	var n *insertion
	ended := contain("the function of a periodic job, or the writing of its value,", func() error {
		resource, value, err := p.job(tick)
		if err == nil {
			n, err = s.newJobRow(ctx, resource, value, options{})
		}
		return err
	})
	select {
	case err := <-ended:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ddb.CtxError(ctx)
	}
	res, err := s.putAll(ctx, n, n.sending(""), n, &counters{s: s, resource: n.resource, inserts: []*insertion{n}}, moved)
	if err != nil {
		return err
	}
	if res.Outcome == ddb.Applied || res.Outcome == ddb.Unknown {
		n.tell(ctx)
	}
	return p.judge(res, next)
}

// judge notes when to look again. Where others were faster the row tells.
func (p *periodic) judge(res ddb.Result, next time.Time) error {
	switch res.Outcome {
	case ddb.Applied:
		p.look = next
		return nil
	case ddb.Condition:
		return nil
	}
	return res.Err
}

// ticked is the row of a schedule in the transaction of a tick.
type ticked struct {
	rows.Traceless
	s    *store
	p    *periodic
	row  ddb.Item // as it was read
	next time.Time
	tick time.Time
}

func (t *ticked) write(w *ddb.Write) {
	w.IfSeen(t.row, aSpec, aNext)
	w.Set(aSpec, ddb.Text(t.p.schedule.spec))
	w.Set(aNext, ddb.Number(ddb.Seconds(t.next)))
	if !t.tick.IsZero() {
		w.Set(aLast, ddb.Number(ddb.Seconds(t.tick)))
	}
}

var _ rows.Action = (*ticked)(nil)

// Write demands that the row is as it was read.
func (t *ticked) Write(w *ddb.Write) (types.TransactWriteItem, bool, error) {
	t.write(w)
	return ddb.UpdateOf(resources.Update(w, resources.RowKey(schedulesKey, t.p.name))), true, nil
}
