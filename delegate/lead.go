package delegate

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/delegation"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/repo"
)

// lead carries out the mail of all, and the commands of this process, until nothing comes
// any more or others lead: then it returns the batch that is not decided, and the item.
//
// A batch whose mail was put is carried out as that mail, when a look finds it: only the row
// tells that nobody has served it.
func (l *line) lead(b *batch, image ddb.Item) (*batch, ddb.Item) {
	d, err := delegation.Of(l.e.core.Table, image)
	if err != nil {
		l.giveUp(b, err)
		return nil, nil
	}
	t, before := l.newTerm(d), d.Lead
	defer t.end()
	defer l.e.gauges.Leads()()
	for claimed := false; ; {
		if t.isDecided(b) {
			return nil, nil
		}
		next, wait := t.gather(b, d, claimed)
		b = next.undecided
		switch {
		case next.decided != nil:
			next.decided()
			b = nil
			continue
		case wait > 0:
			t.sleep(wait)
			continue
		}
		r := &round{l: l, own: next.direct, expect: image, term: t, mails: next.mails, leaves: next.leaves, ids: t.ids}
		began := time.Now()
		after, err := t.run(r, b)
		l.took(time.Since(began))
		if err != nil && !r.elsewhere(err) {
			t.failed(r, b, err)
			return nil, nil
		}
		if err != nil {
			image, d = r.foreign, t.follow(r.foreign)
			l.overtook(before != "" && before == d.Lead)
			if t.deposed(d) || next.leaves {
				return b.yields(d.Lead != before), image
			}
			continue
		}
		image, d, claimed = after, r.left, true
		t.served(r)
		b = t.deliver(r, b)
		if next.leaves {
			return nil, nil
		}
		if image, d, err = t.after(image, d); err != nil {
			t.failed(r, b, err)
			return nil, nil
		}
		if t.deposed(d) {
			return b.yields(d.Lead != before), image
		}
		t.look()
	}
}

// deposed reports whether another one leads.
func (t *term) deposed(d delegation.Evidence) bool { return d.Lead != t.id && d.Lead != "" }

// after is the item behind a round. One that was written by a transaction, with its claims,
// is read: others may have served mail since.
func (t *term) after(image ddb.Item, d delegation.Evidence) (ddb.Item, delegation.Evidence, error) {
	if image != nil {
		return image, d, nil
	}
	image, err := t.l.read(t.ctx)
	if err != nil {
		return nil, d, err
	}
	return image, t.follow(image), nil
}

// passedOver reports whether this leader cannot carry out its own mail, for whatever reason.
func (t *term) passedOver(b *batch) bool {
	return b != nil && b.posted && time.Since(t.began) > 2*t.l.patience()
}

// isDecided takes back the mail of a batch that this leader cannot carry out, and reports
// whether it was decided otherwise.
func (t *term) isDecided(b *batch) bool { return t.passedOver(b) && !t.l.retract(b) }

// follow begins a new stretch with the item as others have left it.
func (t *term) follow(image ddb.Item) delegation.Evidence {
	d, err := delegation.Of(t.l.e.core.Table, image)
	if err != nil {
		d = delegation.Evidence{Lead: "?"} // of whoever has left that; the next reading says so
	}
	t.learn(d)
	return d
}

// retract takes back a mail that this leader cannot carry out as it is, so that it becomes
// its own; false: it was decided otherwise.
func (l *line) retract(b *batch) bool {
	fate, answers, err := l.takeBack(b)
	l.settled = fate == delegation.MailServed
	switch {
	case fate == delegation.MailServed && isTaken(answers):
		b.seq, b.posted, b.inRow = 0, false, false
		return true
	case fate == delegation.MailServed:
		l.finish(b, answers)
	default:
		l.slot = ""
		b.fail(lock.UnknownOutcome(l.e.core.Table, l.key, err))
	}
	return false
}

// work is what one round is for.
type work struct {
	undecided *batch // of this process
	direct    *batch // the same, if its mail was never put
	mails     []mail
	leaves    bool
	decided   func() // the batch has its answers
}

// gather finds what there is to do; or says for how long there is nothing.
func (t *term) gather(b *batch, d delegation.Evidence, claimed bool) (w work, wait time.Duration) {
	l := t.l
	closing := l.e.isClosing()
	b, turn := t.own(b, closing)
	w.undecided = b
	var answers []string
	w.mails, answers = t.usable(d, b)
	if answers != nil {
		w.decided = func() { l.finish(b, answers) }
		return w, 0
	}
	if b != nil && !b.posted {
		l.number(b, d.Life, t.shards)
		w.direct = b
	}
	switch {
	case w.direct != nil || len(w.mails) > 0 || !claimed:
		t.busy = time.Now()
		if w.direct != nil {
			t.last = t.busy
		}
		return w, 0
	case b != nil:
		return w, pauseOfLooks
	}
	wait = t.quiet(turn, closing)
	w.leaves = wait <= 0
	return w, wait
}

// own is the batch of this process, if it has its turn; else in how long it will.
func (t *term) own(b *batch, closing bool) (*batch, time.Duration) {
	if b != nil {
		return b, 0
	}
	turn := t.turn()
	if turn > 0 && !closing {
		return nil, turn
	}
	runtime.Gosched() // callers who were just answered come back
	return t.l.take(), 0
}

// quiet is for how long a leader without work stays; turn is when its own callers have
// theirs.
func (t *term) quiet(turn time.Duration, closing bool) time.Duration {
	last := t.busy
	if t.met.After(last) {
		last = t.met
	}
	stays := t.l.stays() - time.Since(last)
	switch {
	case closing:
		return 0
	case turn > 0 && (stays <= 0 || turn < stays):
		return max(turn, time.Millisecond)
	}
	return stays
}

// sleep waits until there may be something to do.
func (t *term) sleep(most time.Duration) {
	closing := t.l.e.closing
	if t.l.e.isClosing() {
		closing = nil // that is known already
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-t.found:
	case <-t.l.arrived:
	case <-closing:
	case <-timer.C:
	}
}

// run makes a round, for as long as those live whose commands it carries out.
func (t *term) run(r *round, b *batch) (ddb.Item, error) {
	ctx := t.ctx
	if b != nil {
		ctx = b.ctx
	}
	return r.run(ctx)
}

// deliver gives the batch of this process its answers, if the round has them; else it
// returns it.
func (t *term) deliver(r *round, b *batch) *batch {
	switch s, served := r.served[t.l.slot]; {
	case b == nil:
		return nil
	case r.own == b:
		t.l.settled = true
		b.answer(b.answers)
	case served && b.posted && s.Seq == b.seq:
		t.l.finish(b, s.Answers)
	default:
		return b
	}
	return nil
}

// failed ends a term that cannot write the item.
func (t *term) failed(r *round, b *batch, err error) {
	switch {
	case b == nil:
	case b.posted:
		t.l.giveUp(b, err)
	case errors.Is(err, repo.ErrOutcomeUnknown):
		b.life = r.left.Life
		t.l.resolve(b, err)
	default:
		t.l.conclude(b, err)
	}
}

// resolve finds out what became of a leader's write without a verdict: the item says which
// number it has served last, for longer than it keeps the ids of writers.
func (l *line) resolve(b *batch, err error) {
	fate, answers, _ := l.takeBack(b)
	switch {
	case fate != delegation.MailServed:
		l.conclude(b, err)
	case isTaken(answers):
		l.settled = true
		l.requeue(b)
	default:
		l.settled = true
		b.answer(b.answers)
	}
}

// finish gives a batch the answers to its mail, from the item or its row. One that its leader
// did not understand is carried out here.
func (l *line) finish(b *batch, answers []string) {
	l.settled = true
	switch {
	case len(answers) == len(b.callers) && answers[0] != unknown && !isTaken(answers):
		b.answer(answers)
	case len(answers) == 1 && answers[0] == unknown:
		l.deaf = l.seen.Lead
		l.requeue(b)
	case isTaken(answers):
		b.fail(errTakenOut)
	default:
		l.slot = ""
		b.fail(fmt.Errorf("%w: %d answers to a mail that has others", repo.ErrOutcomeUnknown, len(answers)))
	}
}
