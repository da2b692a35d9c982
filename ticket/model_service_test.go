package ticket

// The requests of the model, as the service applies them.

func (w *world) draw(r *rules, sent int8) int8 {
	if !w.exists {
		w.exists = true
		if w.next = sent*perHalf + 1; r.zeroFloor {
			w.next = 0
		}
	}
	w.next++
	return w.next
}

func (w *world) join(r *rules, i int, sent int8) bool {
	if w.w[i] != noTicket && !r.rejoin || w.n < 0 || w.who[i].alone && w.n != 0 {
		return false
	}
	w.w[i], w.b[i] = w.draw(r, sent), sent+halves
	w.n, w.ttl = w.n+1, max(w.ttl, sent+halves)
	return true
}

func (w *world) renew(r *rules, i int, ticket, until int8) bool {
	if r.blindRenew && w.exists {
		w.b[i] = max(w.b[i], until)
		return true
	}
	if w.w[i] != ticket || w.b[i] >= until {
		return false
	}
	w.b[i], w.ttl = until, max(w.ttl, until)
	return true
}

func (w *world) remove(r *rules, i int, ticket int8) bool {
	if w.w[i] != ticket && (!r.blindLeave || !w.exists) {
		return false
	}
	w.w[i], w.b[i], w.left = noTicket, 0, ticket
	w.n--
	return true
}

// carry removes an entry and makes one for another client, or does neither.
func (w *world) carry(r *rules, i int, ticket int8, j int) bool {
	if w.w[i] != ticket && !r.blindCarry || w.w[j] != noTicket || !w.exists {
		return false
	}
	w.w[i], w.b[i], w.left = noTicket, 0, ticket
	w.n--
	return w.join(r, j, w.who[j].sent)
}

func (w *world) brk(r *rules, of, number, b int8) bool {
	if w.w[of] == noTicket || !r.blindBreak && (w.w[of] != number || w.b[of] != b) {
		return false
	}
	if m := &w.who[of]; m.ticket == w.w[of] || m.phase == joining {
		m.passed, m.evicted = m.passed || m.ticket == w.w[of], true
	}
	w.w[of], w.b[of] = noTicket, 0
	w.n--
	w.breaking.done = true
	if !r.noEvidence {
		w.broken[of] = number
	}
	return true
}

func (w *world) pass(r *rules, s snapshot) bool {
	for i, number := range s.w {
		if number != noTicket && (w.w[i] != number || w.b[i] != s.b[i]) && (!r.blindPass || w.w[i] == noTicket) {
			return false
		}
	}
	for i, number := range s.w {
		if number == noTicket {
			continue
		}
		w.who[i].passed = w.who[i].passed || w.w[i] == w.who[i].ticket
		w.w[i], w.b[i] = noTicket, 0
		if !r.keepN {
			w.n--
		}
	}
	return true
}
