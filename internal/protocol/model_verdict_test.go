package protocol

import "github.com/dynahold/dynahold/internal/stored"

// What happens around the holders, and the verdicts that they are given.

// others are the steps of everybody who holds nothing.
func (m *lockModel) others(w lockWorld, out emit[lockWorld]) {
	it := &w.item
	if w.now+1 < m.ticks {
		on := w
		on.now++
		out("clock", "a lease goes by", on, "")
	}
	busy := it.by != 0 || it.time != 0
	expired := it.time <= w.now || m.wildClocks
	if busy && w.breaks > 0 {
		on := w
		on.breaks--
		for i := range on.who {
			a := &on.who[i]
			if it.by == int8(i+1) && it.held == a.token && (a.phase == holding || a.phase == ending) {
				a.broken = true
			}
		}
		on.break_(&m.lockRules)
		out("operator", "breaks the hold", on, "")
	}
	if busy && expired {
		on := w
		on.break_(&m.lockRules)
		out("writer", "breaks an expired hold", on, "")
	}
	if it.exists && (it.by == 0 || m.writerIgnoresLock) {
		on := w
		on.item.stub = false
		on.ended(it.by)
		out("writer", "writes", on, "")
		on = w
		on.vanish()
		out("writer", "deletes the item", on, "")
	}
	if !it.exists && it.life < m.lives {
		on := w
		on.item = lockItem{exists: true, life: it.life + 1, stolen: -1}
		out("writer", "creates the item", on, "")
	}
	if m.byHand {
		m.hand(w, expired, out)
	}
	if m.operates {
		m.operate(w, out)
	}
}

// hand is somebody who follows the article by hand: lockHeld stays as it was.
func (m *lockModel) hand(w lockWorld, expired bool, out emit[lockWorld]) {
	switch on := w; {
	case w.item.by == byHand && w.item.time > w.now:
		on.item.by, on.item.time = 0, 0
		out("hand", "commits", on, "")
	case w.item.exists && !w.item.stub && (w.item.time == 0 || expired):
		on.force()
		on.ended(on.item.by)
		on.item.by, on.item.time = byHand, w.now+lease
		out("hand", "takes the lock", on, "")
	}
}

// verdict judges the refusal of the write that ends the hold of i, as
// lockedread does, and compares with the truth.
func (m *lockModel) verdict(w *lockWorld, i int) (v Verdict, wrong string) {
	a := &w.who[i]
	r := ruling{a.op, a.removes(), wireIDs[i+1], a.token.wire(), w.item.exists, !a.unsure, w.now < a.until}
	judge := m.judge
	if judge == nil {
		judge = rule
	}
	v = judge(w.item.lock(), r)
	m.given[v]++
	switch {
	case v == Committed && !a.applied && a.removes() && a.broken && a.over:
		// An operator broke the hold, and somebody else deleted the item.
	case v == Committed && !a.applied:
		wrong = "the verdict is committed, but the write is not applied"
	case (v == Lost || v == Expired) && a.applied:
		wrong = "the verdict is not applied, but the write is"
	}
	return v, wrong
}

// rule is how Held.Delete, Held.Release and Held.Commit come to their verdict
// (judge in lockedread/held.go and removed in lockedread/commit.go).
func rule(l stored.Record, r ruling) Verdict {
	if r.removes {
		if JudgeDelete(l, Holder{ID: r.id, Token: r.token}, r.exists, r.clean, r.valid) == Committed {
			return Committed
		}
	}
	return JudgeCommit(l, Holder{ID: r.id, Token: r.token}, r.exists, r.clean)
}

// ruleRemove judges deletes by Lock.Remove alone.
func ruleRemove(l stored.Record, r ruling) Verdict {
	if r.op == remove {
		return JudgeDelete(l, Holder{ID: r.id, Token: r.token}, r.exists, r.clean, r.valid)
	}
	return rule(l, r)
}

// Judges of mutants.

// oneLife does not see that an item was made anew.
func oneLife(l stored.Record, r ruling) Verdict {
	if r.exists && OtherLife(l, Holder{ID: r.id, Token: r.token}) {
		l.Token = r.token + 1
	}
	return rule(l, r)
}

// trustsAbsence takes an item that is gone for deleted by this holder, however
// late it is.
func trustsAbsence(l stored.Record, r ruling) Verdict {
	r.valid = true
	return rule(l, r)
}

// forgetsDoubt takes every refusal for that of a first attempt.
func forgetsDoubt(l stored.Record, r ruling) Verdict {
	r.clean = true
	return rule(l, r)
}

// naive takes a refusal for what it says: not applied.
func naive(stored.Record, ruling) Verdict { return Lost }

// hopeful takes a hold that is over, unless it is known to be stolen, for
// ended by this holder.
func hopeful(l stored.Record, r ruling) Verdict {
	if v := rule(l, r); v != Undecided {
		return v
	}
	return Committed
}

// latestOnly sees only a theft that nobody repeated since.
func latestOnly(l stored.Record, r ruling) Verdict {
	if l.Stolen > r.token {
		l.Stolen = 0
	}
	return rule(l, r)
}

// blindToHand does not know what it means that lockHeld is still there under
// another lockedBy.
func blindToHand(l stored.Record, r ruling) Verdict {
	if l.Held == r.token && l.By != r.id {
		l.Held = 0
	}
	return rule(l, r)
}

// hasty calls an own hold expired although an earlier attempt may still come.
func hasty(l stored.Record, r ruling) Verdict {
	if r.exists && l.By == r.id && l.Held == r.token {
		return Expired
	}
	return rule(l, r)
}
