package local

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// shards bounds how many keys share one lock: about keys in use over shards.
const shards = 64

// Lines are the lines of callers, one for each key in use. C is what a caller
// brings along, B what a holder hands on. The zero value is ready.
type Lines[C, B any] struct {
	once   sync.Once
	seed   maphash.Seed
	shards [shards]shard[C, B]
}

type shard[C, B any] struct {
	mu    sync.Mutex
	lines map[string]*line[C, B] // guarded by mu
}

// line is the line of one key. It exists while somebody holds its baton. All
// of it is guarded by the shard's mu.
type line[C, B any] struct {
	holder     *Place[C, B]
	head, tail *Place[C, B] // those who wait
	waiting    int
	moved      time.Time // when the holder got the baton
}

// State is what became of a caller's waiting.
type State int

// The states that end the waiting.
const (
	waiting State = iota
	Holding       // it has the baton, and passes it on when it is done
	Drawn         // the holder took it along: it has no baton to pass on
	gone
)

// Place is a caller's place in a line.
type Place[C, B any] struct {
	Caller C
	shard  *shard[C, B]
	key    string

	// All below is guarded by the shard's mu.
	line       *line[C, B]
	state      State
	called     chan struct{} // closed when state is no longer waiting; nil for who never waited
	prev, next *Place[C, B]
	baton      B
}

// Join takes a place in the line of a key. Wait follows.
func (l *Lines[C, B]) Join(key string, caller C) *Place[C, B] {
	l.once.Do(func() { l.seed = maphash.MakeSeed() })
	s := &l.shards[maphash.String(l.seed, key)%shards]
	p := &Place[C, B]{Caller: caller, shard: s, key: key}
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.lines[key]
	if ln == nil {
		if s.lines == nil {
			s.lines = map[string]*line[C, B]{}
		}
		p.line = &line[C, B]{holder: p, moved: time.Now()}
		p.state = Holding
		s.lines[key] = p.line
		return p
	}
	p.line, p.called, p.prev = ln, make(chan struct{}), ln.tail
	if ln.tail == nil {
		ln.head = p
	} else {
		ln.tail.next = p
	}
	ln.tail = p
	ln.waiting++
	return p
}

// Wait waits until the caller has the baton or was drawn; then the error is
// nil, even if ctx has ended meanwhile, for a baton must be passed on. With an
// error the caller has left the line. A holder that has not moved for longer
// than patience is overtaken.
func (p *Place[C, B]) Wait(ctx context.Context, patience time.Duration) (State, error) {
	if p.called == nil { // it found no line; nobody else touches its state before it passes
		return Holding, nil
	}
	timer := time.NewTimer(p.overtake(patience))
	defer timer.Stop()
	for {
		select {
		case <-p.called:
			return p.now(), nil
		case <-ctx.Done():
			return p.leave(ctx)
		case <-timer.C:
			timer.Reset(p.overtake(patience))
		}
	}
}

// Stood reports whether the caller found somebody in its line.
func (p *Place[C, B]) Stood() bool { return p.called != nil }

func (p *Place[C, B]) now() State {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return p.state
}

func (p *Place[C, B]) leave(ctx context.Context) (State, error) {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if p.state != waiting {
		return p.state, nil
	}
	p.unlink(gone)
	return gone, context.Cause(ctx)
}

// overtake gives the first in line the baton of a holder that does not move.
// It returns when to look again.
func (p *Place[C, B]) overtake(patience time.Duration) time.Duration {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if p.state != waiting {
		return patience
	}
	if left := patience - time.Since(p.line.moved); left > 0 {
		return left
	}
	if p.line.head == p {
		var nothing B
		p.line.call(nothing)
	}
	return patience
}

// call gives the baton to the first in line. The shard's mu is held.
func (ln *line[C, B]) call(b B) {
	p := ln.head
	p.unlink(Holding)
	ln.holder, ln.moved, p.baton = p, time.Now(), b
}

// unlink takes a waiting place out of its line. The shard's mu is held.
func (p *Place[C, B]) unlink(to State) {
	if p.prev == nil {
		p.line.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		p.line.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next, p.state = nil, nil, to
	p.line.waiting--
	close(p.called)
}

// holds reports whether the caller has the baton. The shard's mu is held.
func (p *Place[C, B]) holds() bool { return p.state == Holding && p.line.holder == p }

// Behind reports whether others are before the caller: it waits, or was drawn.
func (p *Place[C, B]) Behind() bool {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return p.state == waiting || p.state == Drawn
}

// Waiting is how many wait behind the holder; 0 for one that was overtaken.
func (p *Place[C, B]) Waiting() int {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if !p.holds() {
		return 0
	}
	return p.line.waiting
}

// Draw takes the first who waits along, if accept wants it: the holder acts
// for it from now on. nil if nobody waits, it is not wanted, or the holder was
// overtaken.
func (p *Place[C, B]) Draw(accept func(C) bool) *Place[C, B] {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if !p.holds() || p.line.head == nil || !accept(p.line.head.Caller) {
		return nil
	}
	first := p.line.head
	first.unlink(Drawn)
	p.line.moved = time.Now() // who takes others along has not stopped
	return first
}

// Show sets what those who wait see of the baton, and what is handed on if the
// holder does not say otherwise.
func (p *Place[C, B]) Show(b B) {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	p.baton = b
}

// Baton is what the holder before handed on, or what was shown since.
func (p *Place[C, B]) Baton() B {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return p.baton
}

// Seen is what the present holder shows; nothing if there is none.
func (p *Place[C, B]) Seen() (b B) {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if p.line.holder != nil {
		return p.line.holder.baton
	}
	return b
}

// Pass hands the baton on, with what the next one should know. False: nobody
// took it, and what it stands for is the caller's to clear away. More calls do
// nothing.
func (p *Place[C, B]) Pass(b B) bool {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if !p.holds() {
		return false
	}
	p.state = gone
	if p.line.head != nil {
		p.line.call(b)
		return true
	}
	p.line.holder = nil
	delete(p.shard.lines, p.key)
	return false
}

// Waiting is how many wait in the line of a key.
func (l *Lines[C, B]) Waiting(key string) int {
	l.once.Do(func() { l.seed = maphash.MakeSeed() })
	s := &l.shards[maphash.String(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := s.lines[key]; ln != nil {
		return ln.waiting
	}
	return 0
}

// Keys is how many lines there are: none when nobody is under way.
func (l *Lines[C, B]) Keys() (n int) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.lines)
		s.mu.Unlock()
	}
	return n
}
