package delegation

import (
	"fmt"
	"strings"
)

// lead is what a leader can do.
func (r delegRules) lead(w delegWorld, l int, out delegStep) {
	who, me := fmt.Sprint("leader ", l+1), w.leaders[l]
	if !me.leads {
		w.leaders[l] = delegLeader{leads: true, image: w.item, known: w.item.served}
		out(who, "reads the item", w)
		return
	}
	if w.deaths < r.deaths {
		to := w
		to.leaders[l], to.deaths = delegLeader{}, w.deaths+1
		out(who, "dies", to)
	}
	if r.plain {
		to := w
		for s := range r.slots {
			to.leaders[l].seen[s], to.leaders[l].fresh[s] = w.rows[s], true
		}
		out(who, "sees all rows", to)
	}
	for s := range r.slots {
		if row := w.rows[s]; row.seq > 0 && !r.plain {
			to := w
			to.leaders[l].seen[s], to.leaders[l].fresh[s] = row, true
			out(who, "sees the row of "+r.slotName(s), to)
		}
		if seq := me.image.served[s]; seq > 0 && !MayForget(int64(seq), int64(me.confirmed[s])) {
			to := w
			if r.deletesRow {
				if to.rows[s].seq <= seq {
					to.rows[s] = delegRow{}
				}
			} else {
				to.answer(s, seq, me.image.taken[s])
			}
			to.leaders[l].confirmed[s] = seq
			out(who, "answers into the row of "+r.slotName(s), to)
		}
	}
	r.round(w, l, out)
}

// read is the stretch in which a leader has read the row of a slot; the present one is 1.
func (r delegRules) read(me *delegLeader, s int) int64 {
	if me.fresh[s] || r.keepsMail {
		return 1
	}
	return 0
}

// round is a leader's write: it serves all that it may, and forgets all that it may.
func (r delegRules) round(w delegWorld, l int, out delegStep) {
	who, me := fmt.Sprint("leader ", l+1), &w.leaders[l]
	next, what := me.image, []string{}
	for s := range r.slots {
		if seq := next.served[s]; seq > 0 && (MayForget(int64(seq), int64(me.confirmed[s])) || r.forgetsAtOnce) {
			next.served[s], next.taken[s] = 0, false
			what = append(what, "forgets "+r.slotName(s))
		}
	}
	var serves [delegSlots]int8
	for s := range r.slots {
		row, life := me.seen[s], fmt.Sprint(me.image.life)
		if r.noLife {
			life = fmt.Sprint(row.life)
		}
		if row.seq > 0 && (!row.late || r.lateServed) && MayServe(w.mail(s, row.seq, row.life, row.answered), r.read(me, s), 1, life, int64(me.known[s])) {
			serves[s], next.served[s], next.taken[s] = row.seq, row.seq, false
			what = append(what, "serves "+r.slotName(s))
		}
	}
	if len(what) == 0 {
		return
	}
	if w.item.version != me.image.version && !r.unconditional {
		me.image, me.known, me.fresh = w.item, w.item.served, [delegSlots]bool{}
		out(who, "is refused", w)
		return
	}
	next.version = w.item.version + 1
	next.life = w.item.life
	w.item, me.image = next, next
	for s, seq := range serves {
		if seq > 0 {
			w.applied[s][seq-1]++
			me.known[s] = seq
		}
	}
	out(who, strings.Join(what, ", "), w)
}
