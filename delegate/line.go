package delegate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/delegation"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Bounds of what one process sends as one: so many commands, of so many bytes.
const (
	mostOrders = 64
	mostBatch  = 64 << 10
)

// settle is how long a caller whose context ended waits for the verdict on what it sent.
const settle = 4 * time.Second

// caller is one call under way.
type caller struct {
	order
	ctx   context.Context
	end   chan verdict // has room: nobody waits for a caller that left
	alone bool         // together with others it failed
}

type verdict struct {
	answer string
	err    error
}

// batch are the callers whose commands travel as one. Its fields belong to the goroutine of
// its line.
type batch struct {
	callers []*caller
	answers []string // of the last time that the commands ran here
	changed []bool   // which of them have changed the item then
	ctx     context.Context
	cancel  context.CancelCauseFunc
	live    atomic.Int64 // callers that have not left

	seq    int64  // 0: it has no number yet
	life   string // of the item, when it got that
	posted bool   // its mail may lie in its row
	forced bool   // who leads does not know its commands
}

func newBatch(callers []*caller) *batch {
	b := &batch{callers: callers}
	b.ctx, b.cancel = context.WithCancelCause(context.WithoutCancel(callers[0].ctx))
	b.live.Store(int64(len(callers)))
	return b
}

// leave counts one caller less; the last one ends the batch.
func (b *batch) leave(cause error) {
	if b.live.Add(-1) == 0 {
		b.cancel(cause)
	}
}

func (b *batch) orders() (all []order) {
	for _, c := range b.callers {
		all = append(all, c.order)
	}
	return all
}

// answer gives every caller what came of its command.
func (b *batch) answer(answers []string) {
	for i, c := range b.callers {
		c.end <- verdict{answer: answers[i]}
	}
	b.cancel(nil)
}

// fail gives all the same error.
func (b *batch) fail(err error) {
	for _, c := range b.callers {
		c.end <- verdict{err: err}
	}
	b.cancel(nil)
}

// place is what a process knows of an item beyond one call: its slot, with the last number
// that it has used, and who leads.
type place struct {
	slot   string
	shards int // of which it was chosen
	seq    int64
	// settled says that what became of the last number is known, and that nothing more can.
	settled bool

	first time.Duration       // until the first look for answers
	deaf  string              // who led and did not know our commands
	seen  delegation.Evidence // without its slots
	at    time.Time           // when that was
}

// sees notes who leads.
func (p *place) sees(d delegation.Evidence) {
	d.Slots = nil
	p.seen, p.at = d, time.Now()
}

// leads is who is likely to lead yet; without a Lead, if nobody is.
func (p *place) leads() delegation.Evidence {
	if time.Since(p.at) > believed {
		return delegation.Evidence{}
	}
	return p.seen
}

// believed is for how long who led is taken for leading yet: a mail that nobody takes out is
// found to be so within a look.
const believed = time.Second

// line is the callers of this process that want to change one item. One goroutine works
// for them as long as there are any.
type line struct {
	e    *engine
	key  repo.Key
	raw  ddb.Item
	text string
	base string // of the rows of mail
	place

	waiting []*caller     // guarded by engine.mu
	inside  *batch        // guarded by engine.mu: at work
	arrived chan struct{} // somebody waits
}

// do has a command carried out.
func (e *engine) do(ctx context.Context, key repo.Key, o order) (answer string, err error) {
	raw, err := e.table.EncodeKey(key)
	if err == nil {
		err = typed.Refuse(ctx, e.table, key, raw)
	}
	if err != nil {
		return "", err
	}
	ctx, told := e.core.Observe.Call(ctx, telemetry.Delegate, "Do")
	told.Key(key.String)
	defer told.End(&err)
	if err := ddb.CtxError(ctx); err != nil {
		return "", err
	}
	c := &caller{order: o, ctx: ctx, end: make(chan verdict, 1)}
	l := e.join(key, raw, c)
	if l == nil {
		return "", fmt.Errorf("%w: the commands are closed", repo.ErrConfig)
	}
	select {
	case v := <-c.end:
		return v.answer, v.err
	case <-ctx.Done():
	}
	b, began := e.leave(l, c)
	if !began {
		return "", ddb.CtxError(ctx)
	}
	if b != nil {
		b.leave(context.Cause(ctx))
	}
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case v := <-c.end:
		return v.answer, v.err
	case <-timer.C:
		return "", lock.UnknownOutcome(e.core.Table, key, ddb.CtxError(ctx))
	}
}

// join adds a caller to the line of its item, and begins one where there is none.
func (e *engine) join(key repo.Key, raw ddb.Item, c *caller) *line {
	text := e.core.KeyText(raw)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	l := e.lines[text]
	if l == nil {
		l = &line{e: e, key: lock.OwnKey(e.table.KeyTable, key, raw), raw: raw, text: text, base: e.mail.base(text), arrived: make(chan struct{}, 1), place: e.slots.Get(text)}
		e.lines[text] = l
		e.working.Go(l.work)
	}
	l.waiting = append(l.waiting, c)
	l.ring()
	return l
}

func (l *line) ring() {
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}

// leave takes a caller out of its line; if its command is under way already, the batch
// that has it.
func (e *engine) leave(l *line, c *caller) (b *batch, began bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(l.waiting, c); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return nil, false
	}
	if l.inside != nil && slices.Contains(l.inside.callers, c) {
		return l.inside, true
	}
	return nil, true
}

// take makes a batch of those who wait; nil: nobody does.
func (l *line) take() *batch {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(c *caller) bool {
		if c.ctx.Err() == nil {
			return false
		}
		c.end <- verdict{err: ddb.CtxError(c.ctx)} // nothing of it is under way
		return true
	})
	n, size := 0, 0
	for _, c := range l.waiting {
		size += len(c.command) + len(c.args) + len(c.once)
		if n > 0 && (n == mostOrders || size > mostBatch || c.alone || l.waiting[0].alone) {
			break
		}
		n++
	}
	if n == 0 {
		return nil
	}
	b := newBatch(slices.Clone(l.waiting[:n]))
	l.waiting = slices.Delete(l.waiting, 0, n)
	l.inside = b
	return b
}

// over ends a line in which nobody waits.
func (l *line) over() bool {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	l.inside = nil
	if len(l.waiting) > 0 {
		return false
	}
	delete(l.e.lines, l.text)
	l.e.slots.Change(l.text, func(place) (place, bool) { return l.place, l.slot != "" })
	return true
}

// again puts callers back into the line, first of all and each by itself.
func (l *line) again(callers []*caller) {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	for _, c := range callers {
		c.alone = true
	}
	l.waiting = append(slices.Clone(callers), l.waiting...)
	l.ring()
}

// requeue puts the callers of a batch back into the line, as they were.
func (l *line) requeue(b *batch) {
	l.e.mu.Lock()
	l.waiting = append(slices.Clone(b.callers), l.waiting...)
	l.e.mu.Unlock()
	b.cancel(nil)
	l.ring()
}

// isTaken reports whether answers say that a mail was taken back.
func isTaken(answers []string) bool { return len(answers) == 1 && answers[0] == taken }

// work changes the item for those who wait, until nobody does.
func (l *line) work() {
	before := 0
	for {
		// Callers who were just answered are about to come back: they get the chance to.
		for range comingBack {
			if l.callers() >= before {
				break
			}
			runtime.Gosched()
		}
		b := l.take()
		if b == nil {
			if l.over() {
				return
			}
			continue
		}
		before = len(b.callers)
		l.change(b)
	}
}

// comingBack is how often others may run before a batch is made of those who wait.
const comingBack = 16

// callers are how many wait.
func (l *line) callers() int {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	return len(l.waiting)
}

// change sees a batch to its verdict: alone, or, where others want the item too, with
// them.
func (l *line) change(b *batch) {
	var image ddb.Item
	if !l.e.wanted.Recent(l.text) {
		decided := false
		if image, decided = l.alone(b); decided {
			return
		}
		l.e.wanted.Note(l.text)
	}
	l.shared(b, image)
}

// alone changes the item as package optimistic does, once: a failed condition, or a
// leader, says that others want it too. It then returns the item as it is.
func (l *line) alone(b *batch) (image ddb.Item, decided bool) {
	r := &round{l: l, own: b}
	_, err := r.run(b.ctx)
	if r.elsewhere(err) {
		return r.foreign, false
	}
	l.conclude(b, err)
	return nil, true
}

// conclude gives a batch that was carried out here its verdicts.
func (l *line) conclude(b *batch, err error) {
	l.settled = !errors.Is(err, repo.ErrOutcomeUnknown)
	switch {
	case err == nil:
		b.answer(b.answers)
	case errors.Is(err, repo.ErrOutcomeUnknown):
		l.slot = "" // whatever lies there under its numbers is nobody's from now on
		l.doubtful(b, err)
	case len(b.callers) > 1 && ofOne(err):
		l.again(b.callers)
		b.cancel(nil)
	default:
		b.fail(err)
	}
}

// doubtful gives the error to those whose commands may be applied. Those that have
// refused are not; what they refused for may never have been, so they run again.
func (l *line) doubtful(b *batch, err error) {
	var refused []*caller
	for i, c := range b.callers {
		if i < len(b.changed) && !b.changed[i] {
			refused = append(refused, c)
			continue
		}
		c.end <- verdict{err: err}
	}
	if len(refused) > 0 {
		l.again(refused)
	}
	b.cancel(nil)
}

// ofOne reports whether an error may be that of one command of several.
func ofOne(err error) bool {
	for _, e := range []error{repo.ErrTooLarge, repo.ErrSchema, repo.ErrFixed, repo.ErrStale} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// shared changes the item where others want it too: it puts the batch into the mail of who
// leads, or leads itself.
func (l *line) shared(b *batch, image ddb.Item) {
	for b != nil {
		if d := l.leads(); image == nil && d.Lead != "" && d.Lead != l.deaf && !b.forced {
			decided := false
			if decided, image = l.post(b, d); decided {
				return
			}
			l.at = time.Time{}
			continue
		}
		if image == nil {
			var err error
			if image, err = l.read(b.ctx); err != nil {
				l.giveUp(b, err)
				return
			}
		}
		d, err := delegation.Of(l.e.core.Table, image)
		if err != nil {
			l.giveUp(b, err)
			return
		}
		l.sees(d)
		if d.Lead != "" && d.Lead != l.deaf && !b.forced {
			decided := false
			if decided, image = l.post(b, d); decided {
				return
			}
			continue
		}
		b, image = l.lead(b, image)
	}
}

// read reads the item.
func (l *line) read(ctx context.Context) (ddb.Item, error) {
	image, err := l.e.core.GetFor(ctx, l.raw, ddb.Options{Holding: true})
	if err == nil && l.e.core.Hidden(image) {
		err = lock.NotFound(l.key, l.e.core.Name)
	}
	return image, err
}

// number gives a batch a number in the slot of this process, which is decided before there
// is another.
func (l *line) number(b *batch, life string, shards int) {
	if b.seq > 0 {
		return
	}
	if l.slot == "" || l.shards != shards || !delegation.MaySend(l.seq, l.settled) {
		l.slot, l.shards, l.seq = newSlot(shards), shards, 0
	}
	l.seq++
	l.settled = false
	b.seq, b.life = l.seq, life
}

// row is what the row of a batch's mail says while it is there.
func (l *line) row(b *batch) delegation.Mail {
	return delegation.Mail{Slot: l.slot, Seq: b.seq, Life: b.life}
}

// giveUp ends a batch with an error that says that nothing was written, if that is true
// of its mail, too.
func (l *line) giveUp(b *batch, err error) {
	if !b.posted {
		l.conclude(b, err)
		return
	}
	fate, answers, why := l.takeBack(b)
	l.settled = fate == delegation.MailServed
	switch {
	case fate == delegation.MailServed && (isTaken(answers) || len(answers) != len(b.callers) || answers[0] == unknown):
		b.fail(err)
	case fate == delegation.MailServed:
		b.answer(answers)
	default:
		l.slot = ""
		b.fail(lock.UnknownOutcome(l.e.core.Table, l.key, fmt.Errorf("its mail was put, and %w: %w", why, err)))
	}
}
