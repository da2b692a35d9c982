package delegate

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/delegation"
)

// Bounds of what a leader does.
const (
	// evidence is how much of the item what was served lately may take, and sending how much of
	// it that of those who send may be, before rows get the answers: that is a write each.
	evidence = 1 << 10
	sending  = 2 << 10
	// mostMails and mostAnswers bound one round.
	mostMails   = 256
	mostAnswers = 16 << 10
	// perShard is how many slots share a partition of mail, and perSecond how many writes:
	// a partition of DynamoDB takes a thousand units.
	perShard    = 16
	fewestSlots = 8 // of a partition that is added for its writes
	perSecond   = 700
	leastShards = 2
	// activeFor is for how long a sender counts that sends nothing.
	activeFor = 150 * time.Millisecond
	// answering is how many answers are put into rows side by side.
	answering = 64
	// idle is how long at least a leader stays without anything to do.
	idle = 40 * time.Millisecond
	// looksBeside is how many looks at a partition are under way at most.
	looksBeside = 4
	// pauseOfLooks is between the end of one look and the next, where it found nothing.
	pauseOfLooks = 2 * time.Millisecond
)

// term is the time for which a process leads. Its fields belong to the goroutine of the
// line, but for those that mu guards.
type term struct {
	l       *line
	id      string
	shards  int
	rows    bool
	stretch atomic.Int64
	known   map[string]int64     // numbers that were served, as far as is known, in this stretch
	mine    map[string]time.Time // slots that were served in this term, and when last
	cycle   time.Duration        // how long a sender takes from one mail to the next
	grown   time.Time            // when partitions were added last
	last    time.Time            // when own callers had their turn last
	busy    time.Time            // when there was something to do last
	met     time.Time            // when the last mail came
	began   time.Time
	ids     ids // of commands that are not served

	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	looks  int // how many partitions are looked at
	found  chan struct{}
	send   chan struct{} // room for answers

	mu        sync.Mutex
	mail      map[int]seen     // guarded by mu: by partition
	underWay  map[string]int64 // guarded by mu: numbers whose answers were sent to the rows
	confirmed map[string]int64 // guarded by mu: those that the rows have
}

// seen is what a look has found, and in which stretch it began.
type seen struct {
	nth     int // look
	stretch int64
	mails   []mail
}

func newID() string { return rand.Text()[:10] }

// newTerm begins with the item as it was read, or as it has refused a write. What is looked
// for is looked for from now on.
func (l *line) newTerm(d delegation.Evidence) *term {
	t := &term{l: l, id: newID(), began: time.Now(), shards: max(leastShards, d.Shards), ids: ids{}, known: map[string]int64{}, mine: map[string]time.Time{},
		found: make(chan struct{}, 1), send: make(chan struct{}, answering), mail: map[int]seen{}, underWay: map[string]int64{}, confirmed: map[string]int64{}}
	for t.shards <= shardOf(l.slot) {
		t.shards *= 2
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.learn(d)
	return t
}

// end ends what the term has begun.
func (t *term) end() {
	t.cancel()
	t.all.Wait()
}

// learn begins a new stretch with what the item says.
func (t *term) learn(d delegation.Evidence) {
	clear(t.known)
	for slot, s := range d.Slots {
		t.known[slot] = s.Seq
	}
	t.stretch.Add(1)
}

// look begins to look at all partitions.
func (t *term) look() {
	for ; t.looks < t.shards; t.looks++ {
		shard := t.looks
		t.all.Go(func() { t.watch(shard) })
	}
}

// watch looks at a partition, again and again. The next look begins when the last one has
// ended, or is late: what is slow holds up nothing.
func (t *term) watch(shard int) {
	var usual place // its trips alone: how long looks take here
	ended := make(chan look, looksBeside)
	for n, under, due := 0, 0, true; t.ctx.Err() == nil; {
		if due && under < looksBeside {
			n, under, due = n+1, under+1, false
			t.all.Go(func() {
				one := look{n: n} // where the client ends the goroutine
				defer func() { ended <- one }()
				one = t.lookAt(shard, n)
			})
		}
		late := time.NewTimer(max(usual.late(), pauseOfLooks))
		select {
		case one := <-ended:
			under, due = under-1, due || one.n == n
			if usual.took(one.took); due && !one.found {
				ddb.Sleep(t.ctx, pauseOfLooks)
			}
		case <-late.C:
			due = true
		}
		late.Stop()
	}
}

// lookAt looks once. What was served lies in its row for hours, and what an earlier look has
// shown the leader knows: neither is found again. But rows tell of senders, for whom a look
// that takes long is pause enough.
func (t *term) lookAt(shard, n int) look {
	began, stretch := time.Now(), t.stretch.Load()
	mails, err := t.l.e.mail.look(t.ctx, t.l.base, shard)
	found := false
	if err == nil {
		t.mu.Lock()
		found = isNews(mails, stretch, t.mail[shard])
		if t.mail[shard].nth < n {
			t.mail[shard] = seen{n, stretch, mails}
		}
		t.mu.Unlock()
	}
	if found {
		ddb.Signal(t.found)
	}
	took := time.Since(began)
	return look{n: n, took: took, found: found || len(mails) > 0 && took >= pauseOfLooks}
}

// isNews reports whether mail waits that the look before has not shown in the same stretch.
func isNews(mails []mail, stretch int64, before seen) bool {
	return slices.ContainsFunc(mails, func(m mail) bool {
		return !m.Answered && (before.stretch != stretch || !slices.ContainsFunc(before.mails, func(b mail) bool { return b.Slot == m.Slot && b.Seq >= m.Seq }))
	})
}

// usable is the mail that the leader may carry out now, and the answers to the mail of a
// batch of its own, if somebody else has put them there.
func (t *term) usable(d delegation.Evidence, own *batch) (mails []mail, answers []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, oldest := t.stretch.Load(), t.l.e.core.Clock().Add(-t.l.e.policy.Skew)
	for shard := range t.shards {
		look := t.mail[shard]
		for _, m := range look.mails {
			mine := own != nil && own.posted && m.Slot == t.l.slot && m.Seq == own.seq
			switch {
			case mine && m.Answered && look.stretch == now:
				answers = m.answers
			case len(mails) == mostMails || (!mine || own.aged()) && m.until.Before(oldest):
			case delegation.MayServe(m.Mail, look.stretch, now, d.Life, t.known[m.Slot]):
				mails = append(mails, m)
			}
		}
	}
	return mails, answers
}

// served notes what a round has served.
func (t *term) served(r *round) {
	now := time.Now()
	clear(t.ids)
	t.l.overtook(false)
	for slot, s := range r.served {
		t.known[slot] = s.Seq
		if before, ok := t.mine[slot]; ok && slot != t.l.slot {
			t.cycle = mean(t.cycle, now.Sub(before))
		}
		t.mine[slot] = now
	}
	if len(r.mails) > 0 {
		t.met = now
	}
	active := max(activeFor, 4*t.cycle)
	maps.DeleteFunc(t.mine, func(_ string, last time.Time) bool { return now.Sub(last) > active })
	if t.wanted() > t.shards && t.shards < delegation.MostShards && now.Sub(t.grown) > 2*active {
		// Senders choose new slots then: for a while there are twice as many.
		for t.grown = now; t.shards < min(t.wanted(), delegation.MostShards); t.shards *= 2 {
		}
	}
	t.rows = r.left.Rows || t.rows && !r.leaves
	t.offload(r)
}

// wanted is how many partitions of mail there should be for those who send. Answers that go
// into rows are a write more.
func (t *term) wanted() int {
	n, writes := len(t.mine), 1
	if t.rows {
		writes = 2
	}
	rate := float64(n*writes) / max(t.cycle, time.Millisecond).Seconds()
	return max(n/perShard, min(n/fewestSlots, int(rate/perSecond)))
}

// mean is a mean that moves.
func mean(of, by time.Duration) time.Duration {
	if of == 0 {
		return by
	}
	return of + (by-of)/8
}

// outgrown reports whether what was served in this term is more than the item should have.
func (t *term) outgrown(d delegation.Evidence) bool {
	n := 0
	for slot, s := range d.Slots {
		if _, ok := t.mine[slot]; ok || t.known[slot] < s.Seq {
			n += s.Bytes(slot)
		}
	}
	return n > sending && time.Since(t.grown) > activeFor
}

// fewer is over how many partitions mail is spread after this term.
func (t *term) fewer() int {
	n := t.shards
	for n > leastShards && t.wanted() <= n/4 {
		n /= 2
	}
	return n
}

// offload puts answers into rows, so that the item may forget them: where there are too
// many of them, and where senders look for them there.
func (t *term) offload(r *round) {
	size := r.left.Size()
	for _, slot := range r.left.Oldest() {
		s := r.left.Slots[slot]
		_, fresh := r.served[slot]
		_, sends := t.mine[slot]
		asked := r.left.Rows && fresh // senders look for it there
		if !asked && (size <= evidence || sends && size <= sending) {
			continue
		}
		size -= s.Bytes(slot)
		if fresh && slot == t.l.slot || !t.asked(slot, s.Seq) {
			continue // who leads needs no answer; or it is on its way
		}
		t.answer(slot, s)
	}
}

// answer puts the answers of a slot into its row.
func (t *term) answer(slot string, s delegation.Served) {
	t.all.Go(func() {
		t.send <- struct{}{}
		defer func() { <-t.send }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), settle)
		defer cancel()
		in, err := t.l.e.mail.answer(t.l.base, slot, s)
		if err != nil {
			return
		}
		var res ddb.Result
		defer func() { // also if the client ends the goroutine
			// A row that refuses it has a later mail.
			t.put(slot, s.Seq, res.Outcome == ddb.Applied || res.Outcome == ddb.Condition)
		}()
		res = t.l.e.mail.table.Update(ctx, in, ddb.Options{Holding: true})
	})
}

// put notes whether a row has the answers that were sent to it.
func (t *term) put(slot string, seq int64, there bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case there:
		t.confirmed[slot] = max(t.confirmed[slot], seq)
	case t.underWay[slot] == seq:
		delete(t.underWay, slot) // once more with a later round
	}
}

// asked notes that the answers of a slot are about to be put into its row; false: they
// were before.
func (t *term) asked(slot string, seq int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.underWay[slot] >= seq {
		return false
	}
	t.underWay[slot] = seq
	return true
}

// answered is the last number of a slot whose answers its row is known to have.
func (t *term) answered(slot string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.confirmed[slot]
}

// turn reports whether the leader's own callers may go along: not more often than others
// come back.
func (t *term) turn() (wait time.Duration) {
	if t.met.IsZero() || time.Since(t.met) > 3*t.cycle || t.cycle == 0 {
		return 0
	}
	return time.Until(t.last.Add(t.cycle * 9 / 10))
}
