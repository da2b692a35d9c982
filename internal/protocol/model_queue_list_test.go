package protocol

// The list on the item that the queue is, and what an entry is known by.

// list has at each place an entry and one more, or that it was left; then zeros.
type list [entries + 3]int8

// vacant is in the place of one who has gone.
const vacant int8 = -1

func (l *list) len() int8 {
	for n, v := range l {
		if v == 0 {
			return int8(n)
		}
	}
	panic("no room in the list")
}

// entry is who has made the entry in a place; -1: nobody.
func (l *list) entry(place int8) int8 {
	if place < 0 || int(place) >= len(l) || l[place] <= 0 {
		return -1
	}
	return l[place] - 1
}

// at is the place of an entry; -1: it has none.
func (l *list) at(e int8) int8 {
	for place, v := range l {
		if v == e+1 && e >= 0 {
			return int8(place)
		}
	}
	return -1
}

func (l *list) add(e int8) { l[l.len()] = e + 1 }

func (l *list) remove(place int8) {
	copy(l[place:], l[place+1:])
	l[len(l)-1] = 0
}

// same reports whether two entries have the same bytes, which is all that anybody sees.
func (r *queueRules) same(a, b int8) bool {
	return a >= 0 && b >= 0 && r.bytes(a) == r.bytes(b)
}

// bytes are what an entry is known by.
func (r *queueRules) bytes(e int8) int8 {
	if r.alike && e == 2*draws-1 {
		return 0
	}
	return e
}

// find is the place of the first entry with the same bytes; -1: there is none.
func (r *queueRules) find(l *list, e int8) int8 {
	for place := range int8(len(l)) {
		if r.same(l.entry(place), e) {
			return place
		}
	}
	return -1
}

// order is what an image tells of who came before whom (Core.Order), by bytes and one more.
type order [entries + 4]int8

func (r *queueRules) order(it *queueItem) (o order) {
	n := 0
	if e := ownEntry(it.by); e >= 0 {
		o[0], n = r.bytes(e)+1, 1
	}
	for place := range it.queue {
		if e := it.queue.entry(int8(place)); e >= 0 {
			o[n] = r.bytes(e) + 1
			n++
		}
	}
	return o
}

// texts are an order as the library's own code takes it.
func (o order) texts() (all []string) {
	for _, b := range o {
		if b != 0 {
			all = append(all, string(rune('a'+b)))
		}
	}
	return all
}

// memory is what one who waits remembers of the last image that showed it waiting.
type memory struct {
	order  order
	stolen int8
}

// remember keeps what an image shows, where entries can be alike: else nobody has to ask.
func (m *queueModel) remember(q *queuer, it *queueItem) {
	q.stands = true
	if m.alike {
		q.memory = memory{m.order(it), it.stolen}
	}
}

// certain reports whether what an image shows under its bytes is its own. Those who may
// take over come in any order here, so that time is no evidence.
func (m *queueModel) certain(q *queuer, it *queueItem) bool {
	switch {
	case !q.stands:
		return false
	case m.trusts || !m.alike || q.memory.stolen == it.stolen:
		return true
	}
	return Follows(string(rune('a'+m.bytes(q.entry)+1)), q.memory.order.texts(), m.order(it).texts())
}
