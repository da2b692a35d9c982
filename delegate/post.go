package delegate

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/delegation"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// How long a sender waits.
const (
	// firstAnswer is when answers are expected while nothing is known of them.
	firstAnswer = 6 * time.Millisecond
	firstStep   = 200 * time.Microsecond
	soonest     = 3 * time.Millisecond // between looks
	mostLooks   = 2                    // side by side
	latest      = 10 * time.Millisecond
	// stalled is for how long at least an item does not move whose leader is taken for gone, and up
	// to as much again, by chance: of those who wait one is the first.
	stalled = 50 * time.Millisecond
	// patience is for how long at least a leader may pass a mail over.
	patience = 300 * time.Millisecond
	// Where requests take long, both are as many of them.
	stalledTrips, patienceTrips = 6, 24
	// carried is for how long a mail is carried out that nobody asks for any more.
	carried = time.Minute
)

// post puts a batch into the mail of who leads, and waits for its answers. Not decided: this
// process is to lead, from the item as it is; nil: as it has to be read.
func (l *line) post(b *batch, d delegation.Evidence) (decided bool, image ddb.Item) {
	if !b.posted {
		if shardOf(l.slot) >= d.Shards {
			b.seq, l.slot = 0, ""
		}
		l.number(b, d.Life, d.Shards)
		b.life, b.posted = d.Life, true
		if b.told == nil {
			b.told = l.e.gauges.Sent(b.ctx)
		}
		in, err := l.e.mail.post(l.base, l.key.String(), mail{Mail: l.row(b), orders: b.orders(), until: l.e.core.Clock().Add(carried)})
		if err != nil {
			b.posted = false
			l.conclude(b, err)
			return true, nil
		}
		res := l.e.mail.table.Update(b.ctx, in, ddb.Options{Holding: true, Decide: true, Hedge: l.e.hedge(3 * l.late())})
		l.throttled = res.Unjudged
		if seq, _ := ddb.Int(res.Image[aSeq]); res.Outcome != ddb.Applied && (res.Outcome != ddb.Condition || seq != b.seq) {
			l.giveUp(b, notPut(res))
			return true, nil
		}
		b.inRow = true
	}
	l.e.wanted.Note(l.text)
	return l.await(b, d)
}

// notPut is why a mail is not in its row, as far as is known.
func notPut(res ddb.Result) error {
	if res.Err == nil {
		return errForeignRow
	}
	return res.Err
}

// watch is what a sender sees while it waits.
type watch struct {
	l            *line
	b            *batch
	began, moved time.Time
	image        ddb.Item // as it was seen last
	chance       float64  // of those who wait one is the first
	rows         bool
	begun        int // looks
	under        int // of them, those under way
	results      chan look
}

// look is what one look has found: the item, or the row of the mail; of the nth one of a
// leader, whether there is mail.
type look struct {
	took  time.Duration
	n     int
	found bool
	image ddb.Item
	row   *mail
	err   error
}

// await looks for the answers to a mail, again and again: side by side, for a look takes
// longer than it is until the next one is worth while.
func (l *line) await(b *batch, d delegation.Evidence) (decided bool, image ddb.Item) {
	w := &watch{l: l, b: b, began: time.Now(), moved: time.Now(), rows: d.Rows, results: make(chan look, mostLooks),
		chance: rand.Float64()}
	ctx, cancel := context.WithCancel(b.ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	if l.first == 0 {
		l.first = firstAnswer
	}
	timer := time.NewTimer(l.first)
	defer timer.Stop()
	for n := 0; ; {
		select {
		case <-b.ctx.Done():
			l.giveUp(b, ddb.CtxError(b.ctx))
			return true, nil
		case <-timer.C:
			if w.under < mostLooks {
				inRow := w.rows && w.begun%4 != 3
				w.begun, w.under = w.begun+1, w.under+1
				all.Go(func() {
					began, found := time.Now(), look{err: goroutine.ErrEnded}
					defer func() { w.results <- found }()
					found = w.fetch(ctx, inRow)
					found.took = time.Since(began)
				})
			}
			timer.Reset(min(latest, soonest+time.Duration(w.begun/2)*time.Millisecond))
		case found := <-w.results:
			w.under--
			l.took(found.took)
			decided, image, err := w.judge(found)
			if n++; n == 1 {
				l.first = l.sooner(decided)
			}
			if err != nil {
				l.giveUp(b, err)
				return true, nil
			}
			if decided || image != nil {
				return decided, image
			}
		}
	}
}

// sooner is how long to wait before the first look, after one that has found the answers or
// not: two of three are to find them.
func (l *line) sooner(found bool) time.Duration {
	if found {
		return max(time.Millisecond, l.first-firstStep)
	}
	return l.first + 2*firstStep
}

// looking is how a sender looks for answers. Those that it finds are true however old the
// reading is, and half as dear; that there are none it asks again.
var looking = ddb.Options{Holding: true, Stale: true}

// fetch looks at the row of the mail, or at the item.
func (w *watch) fetch(ctx context.Context, inRow bool) (found look) {
	if !inRow {
		found.image, found.err = w.l.readAs(ctx, looking)
		if d, err := delegation.Of(w.l.e.core.Table, found.image); found.err != nil || err != nil || d.Life != w.b.life {
			found.image, found.err = w.l.read(ctx) // it may be of before the leader's first write
		}
		return found
	}
	row, err := w.l.e.mail.get(ctx, w.l.base, w.l.slot, looking)
	return look{row: &row, err: err}
}

// judge says what a look tells: the answers, or that it is time to lead, from the item as
// it is.
func (w *watch) judge(found look) (decided bool, image ddb.Item, err error) {
	switch {
	case found.err != nil:
		return false, nil, found.err
	case found.row != nil:
		return w.inRow(*found.row), nil, nil
	}
	return w.onItem(found.image)
}

// inRow looks for the answers in the row of the mail.
func (w *watch) inRow(row mail) (decided bool) {
	if delegation.FateInRow(row.Mail, w.b.seq, false) != delegation.MailServed { // it may be of before the mail
		return false
	}
	w.l.finish(w.b, row.answers)
	return true
}

// onItem looks for the answers on the item, and whether it is time to lead.
func (w *watch) onItem(now ddb.Item) (decided bool, image ddb.Item, err error) {
	l, b := w.l, w.b
	d, err := delegation.Of(l.e.core.Table, now)
	if err != nil {
		return false, nil, err
	}
	served := d.Slots[l.slot]
	fate := delegation.FateOnItem(d, l.row(b))
	l.sees(d)
	switch fate {
	case delegation.MailServed:
		l.finish(b, served.Answers)
		return true, nil, nil
	case delegation.MailLost:
		return false, nil, errAnotherLife
	}
	if w.image == nil || !sameWrite(l.e.core, now, w.image) {
		w.moved = time.Now()
	}
	w.image, w.rows = now, d.Rows
	passedOver := time.Since(w.began) > l.patience() || shardOf(l.slot) >= d.Shards
	if d.Lead != "" && time.Since(w.moved) < l.goneAfter(w.chance) && !passedOver {
		return false, nil, nil
	}
	b.forced, b.passed = d.Lead != "", passedOver // else who writes first leads
	return false, now, nil
}

// errRowGone says that nobody can tell what became of a mail.
var errRowGone = errors.New("the row of its mail was removed meanwhile")

var errAnotherLife = errors.New("the item was deleted and made anew meanwhile")

// takeBack finds out what became of a mail, and sees to it that nothing more does: if it
// was not served, the item says from then on that it was taken back.
func (l *line) takeBack(b *batch) (fate delegation.MailFate, answers []string, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), settle)
	defer cancel()
	core := l.e.core
	for {
		image, err := l.read(ctx)
		if errors.Is(err, repo.ErrNotFound) {
			return delegation.MailLost, nil, errors.New("the item is gone, with what it said of that")
		}
		if err != nil {
			return delegation.MailUnproven, nil, err
		}
		d, err := delegation.Of(core.Table, image)
		if err != nil {
			return delegation.MailUnproven, nil, err
		}
		switch delegation.FateOnItem(d, l.row(b)) {
		case delegation.MailServed:
			return delegation.MailServed, d.Slots[l.slot].Answers, nil
		case delegation.MailLost:
			return delegation.MailLost, nil, errAnotherLife
		}
		if d.Slots[l.slot].Seq > b.seq {
			return delegation.MailUnproven, nil, errForeignRow
		}
		row, err := l.e.mail.get(ctx, l.base, l.slot, ddb.Options{Holding: true})
		if err != nil {
			return delegation.MailUnproven, nil, err
		}
		switch fate := delegation.FateInRow(row.Mail, b.seq, b.inRow); {
		case fate == delegation.MailServed:
			return delegation.MailServed, row.answers, nil
		case fate == delegation.MailLost, b.aged():
			return delegation.MailLost, nil, errRowGone
		}
		res, err := l.mark(ctx, image, d, delegation.Served{Seq: b.seq, At: typed.Version(core, image), Answers: []string{taken}})
		if err != nil {
			return delegation.MailUnproven, nil, err
		}
		switch res.Outcome {
		case ddb.Applied:
			return delegation.MailServed, []string{taken}, nil
		case ddb.Refused:
			return delegation.MailUnproven, nil, res.Err
		}
	}
}

// mark writes nothing but what became of a mail, and moves what leaders demand of the item.
func (l *line) mark(ctx context.Context, image ddb.Item, d delegation.Evidence, s delegation.Served) (ddb.Result, error) {
	core := l.e.core
	d.Slots[l.slot] = s
	w := core.NewWrite()
	w.Set(core.Delegated, d.Value())
	cas.Move(w, protocol.NewMark(), image, core.Delegated, core.Attr.Tombstone)
	in, err := w.Update(l.raw)
	if err != nil {
		return ddb.Result{}, err
	}
	return core.Update(ctx, in, ddb.Options{Holding: true, Decide: true}), nil
}
