package ticket

// breakOne is somebody who sees an entry, and breaks it.
func (r *rules) breakOne(w world, out step) {
	o := w.breaking
	if o.lateB != 0 {
		to := w
		to.breaking.lateB = 0
		to.brk(r, o.of, o.w, o.lateB)
		out(deed{what: "has a late copy arrive: break"}, to, "")
	}
	switch o.phase {
	case 0:
		for i := range r.members {
			if w.w[i] != noTicket {
				to := w
				to.breaking = breaking{phase: 1, of: int8(i), w: w.w[i], b: w.b[i]}
				out(deed{who: i, what: "is seen by who will break its ticket"}, to, "")
			}
		}
	case 1:
		doubt := w
		doubt.breaking.doubt = true
		doubt.send(deed{who: int(o.of), what: "is broken"}, out, func(to *world) { to.breaking.lateB = o.b },
			func(to *world) bool { return to.brk(r, o.of, o.w, o.b) },
			func(to *world, applied bool) string {
				if !applied && to.w[o.of] == o.w { // it was renewed
					to.breaking.b, to.breaking.doubt = to.b[o.of], o.doubt
					return ""
				}
				to.breaking.phase = 2
				told := applied || o.doubt && to.line().brokenTicket(int64(o.w))
				unknown := !applied && o.doubt && !to.exists
				switch {
				case applied && w.w[o.of] != o.w:
					return "a ticket is broken that nobody has named"
				case told && !to.breaking.done:
					return "told that a ticket is broken, and it is not"
				case !told && !unknown && to.breaking.done:
					return "told that a ticket was gone, and it was broken"
				}
				return ""
			})
	}
}
