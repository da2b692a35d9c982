package local

import "time"

// Draw takes the first who waits along, if accept wants it: the holder acts
// for it from now on. nil if nobody waits, it is not wanted, or the holder was
// overtaken.
func (p *Waiter[C, B]) Draw(accept func(C) bool) *Waiter[C, B] {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if !p.holds() || p.queue.head == nil || !accept(p.queue.head.Caller) {
		return nil
	}
	first := p.queue.head
	first.unlink(Drawn)
	p.queue.moved = time.Now() // who takes others along has not stopped
	p.queue.watch()
	return first
}

// Show sets what those who wait see of the holder, and what is passed on if the
// holder does not say otherwise.
func (p *Waiter[C, B]) Show(b B) {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	p.handoff = b
	if p.holds() && p.queue.head != nil {
		p.queue.head.prepare()
	}
}

// Handoff is what the holder before passed on, or what was shown since.
func (p *Waiter[C, B]) Handoff() B {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return p.handoff
}

// Seen is what the present holder shows; nothing if there is none.
func (p *Waiter[C, B]) Seen() (b B) {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if p.queue.holder != nil {
		return p.queue.holder.handoff
	}
	return b
}

// Pass passes the turn on, with what the next one should know. False: nobody
// took it, and what it stands for is the caller's to clear away. More calls do
// nothing.
func (p *Waiter[C, B]) Pass(b B) bool {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if !p.holds() {
		return false
	}
	p.state = gone
	if p.queue.head != nil {
		p.queue.call(b)
		return true
	}
	p.queue.holder = nil
	delete(p.shard.queues, p.key)
	return false
}
