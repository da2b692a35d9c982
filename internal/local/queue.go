package local

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// shards bounds how many keys share one lock: about keys in use over shards.
const shards = 64

// Patience is how long a caller stands behind one of its own process that does
// not move, where the line is only there to spare both of them a conflict and
// nobody relies on it. It is not a constant because tests hold callers back on
// purpose: they set it before any of them stands in a line.
var Patience = 250 * time.Millisecond

// Queues are the queues of callers, one for each key in use. C is what a caller
// brings along, B what a holder passes on with it. The zero value is ready.
type Queues[C, B any] struct {
	// Over reports whether what a holder shows is over, so that nobody should wait for
	// it any more; it is asked every Look. nil: it never is.
	Over func(shown B) bool
	Look time.Duration
	// Soon reports whether a holder that shows this is about to be done; nil: none says so.
	Soon func(shown B) bool

	once   sync.Once
	seed   maphash.Seed
	shards [shards]shard[C, B]
}

type shard[C, B any] struct {
	mu     sync.Mutex
	queues map[string]*queue[C, B] // guarded by mu
}

// queue is the queue of one key. It exists while somebody has its turn. All
// of it is guarded by the shard's mu.
type queue[C, B any] struct {
	holder     *Waiter[C, B]
	head, tail *Waiter[C, B] // those who wait
	waiting    int
	moved      time.Time // when the holder got the turn
}

// State is what became of a caller's waiting.
type State int

// The states that end the waiting.
const (
	waiting State = iota
	Holding       // it has the turn, and passes it on when it is done
	Drawn         // the holder took it along: it has no turn to pass on
	gone
)

// Waiter is a caller's place in a queue.
type Waiter[C, B any] struct {
	Caller C
	queues *Queues[C, B]
	shard  *shard[C, B]
	key    string

	// All below is guarded by the shard's mu.
	queue      *queue[C, B]
	state      State
	called     chan struct{} // closed when state is no longer waiting; nil for who never waited
	patience   time.Duration
	timer      *time.Timer // says when to look at the holder; nil before Wait
	prev, next *Waiter[C, B]
	onNext     func() // see WhenNext; nil once it was run
	handoff    B
}

// Join takes a place in the queue of a key. Wait follows.
func (l *Queues[C, B]) Join(key string, caller C) *Waiter[C, B] {
	l.once.Do(func() { l.seed = maphash.MakeSeed() })
	s := &l.shards[maphash.String(l.seed, key)%shards]
	p := &Waiter[C, B]{Caller: caller, queues: l, shard: s, key: key}
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.queues[key]
	if ln == nil {
		if s.queues == nil {
			s.queues = map[string]*queue[C, B]{}
		}
		p.queue = &queue[C, B]{holder: p, moved: time.Now()}
		p.state = Holding
		s.queues[key] = p.queue
		return p
	}
	p.queue, p.called, p.prev = ln, make(chan struct{}), ln.tail
	if ln.tail == nil {
		ln.head = p
	} else {
		ln.tail.next = p
	}
	ln.tail = p
	ln.waiting++
	return p
}

// Wait waits until the caller has the turn or was drawn; then the error is
// nil, even if ctx has ended meanwhile, for a turn must be passed on. With an
// error the caller has left the queue. A holder that has not moved for longer
// than patience is overtaken.
func (p *Waiter[C, B]) Wait(ctx context.Context, patience time.Duration) (State, error) {
	if p.called == nil { // it found no queue; nobody else touches its state before it passes
		return Holding, nil
	}
	timer := p.watch(patience)
	defer timer.Stop()
	for {
		select {
		case <-p.called:
			return p.now(), nil
		case <-ctx.Done():
			return p.leave(ctx)
		case <-timer.C:
			p.skipStuck()
		}
	}
}

// watch makes the timer by which the caller looks at the holder. It is set only while the
// caller is the first who waits, who alone can do something: with thousands in a line the
// looks of all of them would cost more than what they wait for.
func (p *Waiter[C, B]) watch(patience time.Duration) *time.Timer {
	p.shard.mu.Lock()
	p.patience, p.timer = patience, time.NewTimer(never)
	p.shard.mu.Unlock()
	p.skipStuck()
	return p.timer
}

// never is when a timer that is not set is due.
const never time.Duration = 1 << 62

// watch sets the timer of the first who waits. The shard's mu is held.
func (ln *queue[C, B]) watch() {
	p := ln.head
	if p == nil || p.timer == nil {
		return // nobody waits, or not yet
	}
	p.prepare()
	left := p.patience - time.Since(ln.moved)
	if p.queues.Over != nil {
		left = min(left, p.queues.Look)
	}
	p.timer.Reset(left)
}

// WhenNext has f run once, on its own, when the caller is the first of those who wait,
// and Soon says that its turn is about to come. It is called before Wait.
func (p *Waiter[C, B]) WhenNext(f func()) {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	p.onNext = f
}

// prepare runs that if it is time to. The caller is the first who waits, and the shard's
// mu is held.
func (p *Waiter[C, B]) prepare() {
	if p.onNext != nil && p.queues.Soon != nil && p.queues.Soon(p.queue.holder.handoff) {
		go p.onNext()
		p.onNext = nil
	}
}

// Stood reports whether the caller found somebody in its queue.
func (p *Waiter[C, B]) Stood() bool { return p.called != nil }

func (p *Waiter[C, B]) now() State {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return p.state
}

func (p *Waiter[C, B]) leave(ctx context.Context) (State, error) {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if p.state != waiting {
		return p.state, nil
	}
	p.unlink(gone)
	p.queue.watch()
	return gone, context.Cause(ctx)
}

// skipStuck looks at the holder, if the caller is the first who waits, and takes the turn
// of one that does not move.
func (p *Waiter[C, B]) skipStuck() {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if p.state != waiting || p.queue.head != p {
		return
	}
	over := p.queues.Over
	if time.Since(p.queue.moved) < p.patience && (over == nil || !over(p.queue.holder.handoff)) {
		p.queue.watch()
		return
	}
	var nothing B
	p.queue.call(nothing)
}

// call gives the turn to the first who waits. The shard's mu is held.
func (ln *queue[C, B]) call(b B) {
	p := ln.head
	p.unlink(Holding)
	ln.holder, ln.moved, p.handoff = p, time.Now(), b
	ln.watch()
}

// unlink takes a waiting place out of its queue. The shard's mu is held.
func (p *Waiter[C, B]) unlink(to State) {
	if p.prev == nil {
		p.queue.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		p.queue.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next, p.state = nil, nil, to
	p.queue.waiting--
	close(p.called)
}

// holds reports whether the caller has the turn. The shard's mu is held.
func (p *Waiter[C, B]) holds() bool { return p.state == Holding && p.queue.holder == p }

// Behind reports whether others are before the caller: it waits, or was drawn.
func (p *Waiter[C, B]) Behind() bool {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return p.state == waiting || p.state == Drawn
}

// Waiting is how many wait behind the holder; 0 for one that was overtaken.
func (p *Waiter[C, B]) Waiting() int {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if !p.holds() {
		return 0
	}
	return p.queue.waiting
}

// Waiting is how many wait in the queue of a key.
func (l *Queues[C, B]) Waiting(key string) int {
	l.once.Do(func() { l.seed = maphash.MakeSeed() })
	s := &l.shards[maphash.String(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := s.queues[key]; ln != nil {
		return ln.waiting
	}
	return 0
}

// Keys is how many lines there are: none when nobody is under way.
func (l *Queues[C, B]) Keys() (n int) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.queues)
		s.mu.Unlock()
	}
	return n
}
