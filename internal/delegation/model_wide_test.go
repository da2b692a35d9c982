package delegation

import (
	"hash/maphash"

	"github.com/dynahold/dynahold/internal/search"
)

// Three senders are too many states to tell apart what does not matter: which of them is
// which, which leader is which, how often the item was written, and what was seen that no
// step will use.

// run searches the worlds of the rules, one for all that are the same but for that.
func run(r delegRules) found {
	start := delegWorld{item: delegItem{version: 1}}
	for s := range r.slots {
		if !r.remade {
			start.senders[s].seq = 1 // who posts nothing yet has one, too
		}
	}
	f := search.All([]delegWorld{r.one(start)}, func(w *delegWorld, step search.Emit[delegWorld, string]) {
		r.next(*w, func(who, what string, to delegWorld, wrong string) { step(who+": "+what, r.one(to), wrong) })
	})
	return found{f.States, f.Wrong, f.Trace(func(s search.Step[delegWorld, string]) string { return s.Name })}
}

var delegSeed = maphash.MakeSeed()

// orders are those of the senders that are alike.
func (r delegRules) orders() [][delegSlots]int {
	switch {
	case r.slots == 3 && !r.plain && !r.few:
		return [][delegSlots]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	case r.slots == 3:
		return [][delegSlots]int{{0, 1, 2}, {0, 2, 1}} // the first is another
	case r.slots == 2 && !r.plain && !r.few:
		return [][delegSlots]int{{0, 1, 2}, {1, 0, 2}}
	}
	return [][delegSlots]int{{0, 1, 2}}
}

// one is the world that stands for all that are like it.
func (r delegRules) one(w delegWorld) (best delegWorld) {
	w.forget(r)
	least := uint64(0)
	for n, order := range r.orders() {
		for first := range max(1, r.leaders) {
			like := w.ordered(order)
			like.leaders[0], like.leaders[first] = like.leaders[first], like.leaders[0]
			if at := maphash.Comparable(delegSeed, like); at < least || n+first == 0 {
				best, least = like, at
			}
		}
	}
	return best
}

// forget drops what no step uses: a version is compared with the item's alone, and one that
// is not the same now will never be. Whether mail that was seen is used is the library's to
// say: what is dropped by a rule of the model's own shows no fault of the library's.
func (w *delegWorld) forget(r delegRules) {
	version := func(of int8) int8 {
		switch of {
		case 0, w.item.version:
			return min(of, 1) * 2
		}
		return 1
	}
	for s := range w.senders {
		if of := version(w.senders[s].image.version); of == 1 {
			w.senders[s].image = delegItem{version: 1}
		} else {
			w.senders[s].image.version = of
		}
		if w.senders[s].decided {
			w.senders[s].posted, w.senders[s].inRow, w.senders[s].aged = false, false, false
		}
	}
	for l := range w.leaders {
		me := &w.leaders[l]
		me.image.version = version(me.image.version)
		for s := range me.seen {
			row := me.seen[s]
			if !r.keepsMail && !MayServe(Mail{Seq: int64(row.seq), Life: "any", Answered: row.answered}, r.read(me, s), 1, "any", int64(me.known[s])) {
				me.seen[s], me.fresh[s] = delegRow{}, false
			}
		}
	}
	w.item.version = 2
}

// expires removes a row, as TTL does after so long that no copy of a request comes any more. The
// sender may repeat its post yet, if that has no answer; then it heeds how long it waits. Who has
// the answer needs no clock.
func (r delegRules) expires(w delegWorld, s int, out delegStep) {
	if !r.ttl {
		return
	}
	me, to := w.senders[s], w
	if waits := me.posted && !me.decided && !me.inRow; w.rows[s].seq > 0 {
		to.rows[s], to.answers[s] = delegRow{}, [delegMails]int8{}
		to.posts[s], to.senders[s].aged = [delegMails]int8{}, waits
		out("TTL", "removes the row of "+r.slotName(s), to)
	}
	if to = w; me.posted && !me.decided && !me.inRow && w.rows[s].seq < me.seq {
		to.rows[s] = delegRow{seq: me.seq, life: me.life, late: me.aged}
		out("sender "+r.slotName(s), "repeats its post", to)
	}
}

// ordered has the senders in another order.
func (w delegWorld) ordered(order [delegSlots]int) (to delegWorld) {
	to = w
	item := func(i delegItem) (o delegItem) {
		o = i
		for s, from := range order {
			o.served[s], o.taken[s] = i.served[from], i.taken[from]
		}
		return o
	}
	to.item = item(w.item)
	for l, me := range w.leaders {
		to.leaders[l].image = item(me.image)
		for s, from := range order {
			to.leaders[l].known[s], to.leaders[l].seen[s], to.leaders[l].fresh[s], to.leaders[l].confirmed[s] = me.known[from], me.seen[from], me.fresh[from], me.confirmed[from]
		}
	}
	for s, from := range order {
		to.rows[s], to.senders[s], to.posts[s], to.answers[s], to.applied[s] = w.rows[from], w.senders[from], w.posts[from], w.answers[from], w.applied[from]
		to.senders[s].image = item(w.senders[from].image)
	}
	return to
}
