package protocol

// The queue on the item, seen from one who waits with two looks under way: a second one
// beside that of read. Each sees the item at one moment, and is answered at a later one:
// both in any order.

// beside is the second look.
type beside struct {
	step  int8 // 0: there is none; 1: it is sent; 2: it has seen the item
	asked int8 // age of the request
	fresh bool // it was sent after the newest answer that is believed had come
	saw   queueItem
}

// lookBeside is what may become of the second look next.
func (m *queueModel) lookBeside(w queueWorld, i int, out emit[queueWorld]) {
	q := &w.who[i]
	name := queueIDs[taker(q.entry)]
	switch q.beside.step {
	case 0:
		q.beside = beside{step: 1, fresh: true}
		if m.fromSent {
			q.unseen = 0
		}
		out(name, "asks beside", w, "")
	case 1:
		q.beside.step, q.beside.saw = 2, w.item
		out(name, "its second look sees the item", w, "")
	case 2:
		b := q.beside
		q.beside = beside{}
		if m.believe(q, b.saw.token, b.fresh) {
			m.seeItem(&w, i, &b.saw, b.asked)
		}
		out(name, "is answered beside", w, "")
	}
}

// believe reports whether an answer is news: it was sent after the newest answer had
// come, or it shows a greater lockToken.
func (m *queueModel) believe(q *queuer, token int8, fresh bool) bool {
	if !m.looks {
		return true
	}
	if !fresh && token <= q.shown && !m.anyOrder {
		return false
	}
	q.shown, q.fresh, q.beside.fresh = token, false, false
	return true
}
