package delegation

import (
	"fmt"
	"strings"
)

// emit takes one step that is possible: who does what, the state after it, and what is wrong
// there.
type emit func(who, what string, to delegWorld, wrong string)

// found is what a search found.
type found struct {
	states int
	wrong  string
	trace  []string // the shortest way there
}

func (f found) String() string { return f.wrong + ", after\n\t" + strings.Join(f.trace, "\n\t") }

// The world of delegated commands: an item with its evidence, a row for each slot, leaders
// that read, look, write, answer and forget, and may die between any two of these, senders
// that post, look, take back or change the item themselves, and copies of every write to a
// row, at any later time. A copy of a write of the item does nothing: the version that it
// demands does not come again. There are no clocks.

const (
	delegSlots   = 3
	delegMails   = 2
	delegLeaders = 2
)

// delegItem is the item: the version of the write that moved it last, and for each slot the
// number that it says was served.
type delegItem struct {
	life, version int8
	served        [delegSlots]int8
	taken         [delegSlots]bool // that number was taken back
}

// delegRow is the row of a slot.
type delegRow struct {
	seq, life             int8
	answered, taken, late bool // late: the mail is too old to be carried out
}

// delegLeader leads: it has the item as it knows it, and the mail that it has seen.
type delegLeader struct {
	leads     bool
	image     delegItem
	known     [delegSlots]int8
	seen      [delegSlots]delegRow // seq 0: nothing
	fresh     [delegSlots]bool     // the reading began after the image
	confirmed [delegSlots]int8     // whose answers the row has
}

// delegSender is the process of a slot.
type delegSender struct {
	seq      int8 // of the mail under way, or decided; 0: none yet
	life     int8
	posted   bool
	inRow    bool // it knows that its mail was in the row
	aged     bool // TTL may have removed its row since
	decided  bool
	image    delegItem // that it has read to take back, or to write directly; version 0: none
	rowRead  bool      // and then the row, which had the commands
	verdicts [delegMails]delegVerdict
}

type delegVerdict int8

const (
	noVerdict delegVerdict = iota
	toldApplied
	toldNot
	toldUnknown
)

type delegWorld struct {
	item    delegItem
	rows    [delegSlots]delegRow
	leaders [delegLeaders]delegLeader
	senders [delegSlots]delegSender
	posts   [delegSlots][delegMails]int8 // life plus one of posts that were sent: copies may come
	answers [delegSlots][delegMails]int8 // 1: served, 2: taken back
	applied [delegSlots][delegMails]int8
	deaths  int8
}

// delegRules are the bounds of a search, and what a mutant leaves out.
type delegRules struct {
	slots, mails int
	leaders      int // at a time; 0: one
	deaths       int8
	ttl          bool // TTL removes rows
	remade       bool // the item is deleted and made anew, once
	few          bool // the first sender has another mail, the others have one
	sends        bool // nobody writes the item but who leads
	plain        bool // the second sender does nothing but post and wait, no answer comes twice, and looks see all rows

	twoMails       bool // a slot posts again before the first is decided
	keepsMail      bool // after another's write the leader uses what it has seen before
	forgetsAtOnce  bool // the item forgets what the row does not have yet
	ignoresRow     bool // a sender takes the item without an entry for its word
	blanksOnly     bool // a sender takes back by the row alone
	directAfterAll bool // a sender that has posted writes the item itself
	unconditional  bool // of two writes of the item the second is applied, too
	noLife         bool // mail of an earlier item is carried out
	goneBelieved   bool // a sender whose row is gone takes that for not served
	agedBelieved   bool // and so one whose post may have come again after TTL
	lateServed     bool // a leader carries out a mail however old it is
	deletesRow     bool // the row goes where the answers should stay
}

func (r delegRules) slotName(s int) string { return fmt.Sprintf("%c", 'a'+s) }

// view is what the item says, in the form that the library reads.
func (i delegItem) view() Evidence {
	d := Evidence{Life: fmt.Sprint(i.life), Slots: map[string]Served{}}
	for s, seq := range i.served {
		if seq > 0 {
			d.Slots[delegRules{}.slotName(s)] = Served{Seq: int64(seq)}
		}
	}
	return d
}

func (w *delegWorld) mail(s int, seq, life int8, answered bool) Mail {
	return Mail{Slot: delegRules{}.slotName(s), Seq: int64(seq), Life: fmt.Sprint(life), Answered: answered}
}

// wrong is the promise that is broken, if any is.
func (w *delegWorld) wrong() string {
	for s := range w.applied {
		for n, times := range w.applied[s] {
			told := w.senders[s].verdicts[n]
			switch {
			case told == noVerdict && n+1 < delegMails && w.posts[s][n] > 0 && w.posts[s][n+1] > 0:
				return fmt.Sprintf("mail %d of %c is covered by the next: what became of it nobody will know", n+1, 'a'+s)
			case times > 1:
				return fmt.Sprintf("mail %d of %c is applied twice", n+1, 'a'+s)
			case times > 0 && told == toldNot:
				return fmt.Sprintf("mail %d of %c is applied, its sender was told that it is not", n+1, 'a'+s)
			case times == 0 && told == toldApplied:
				return fmt.Sprintf("mail %d of %c is not applied, its sender was told that it is", n+1, 'a'+s)
			}
		}
	}
	return ""
}

func (r delegRules) next(w delegWorld, step emit) {
	out := func(who, what string, to delegWorld) { step(who, what, to, to.wrong()) }
	for s := range r.slots {
		r.send(w, s, out)
		r.copies(w, s, out)
		r.expires(w, s, out)
	}
	for l := range max(1, r.leaders) {
		r.lead(w, l, out)
	}
	if r.remade && w.item.life == 0 {
		w.item = delegItem{life: 1, version: w.item.version + 1}
		out("somebody", "deletes the item and makes it anew", w)
	}
}

type delegStep func(who, what string, to delegWorld)

// send is what the process of a slot can do.
func (r delegRules) send(w delegWorld, s int, out delegStep) {
	who, me := "sender "+r.slotName(s), w.senders[s]
	if int(me.seq) < r.mails && (s == 0 || !r.few) && (MaySend(int64(me.seq), me.decided) || r.twoMails) {
		to := w
		to.senders[s] = delegSender{seq: me.seq + 1, life: w.item.life, verdicts: me.verdicts}
		out(who, "has another batch", to)
	}
	if me.seq == 0 || me.decided {
		return
	}
	if !me.posted {
		to := w
		to.senders[s].posted, to.senders[s].image = true, delegItem{}
		to.post(s, me.seq, me.life)
		out(who, fmt.Sprint("posts mail ", me.seq), to)
		if to.senders[s].inRow = r.ttl; r.ttl {
			out(who, fmt.Sprint("posts mail ", me.seq, " and has the answer"), to)
		}
	}
	only := r.plain && s > 0 // posts and waits
	if (!me.posted || r.directAfterAll) && !only && !r.sends {
		r.direct(w, s, out)
	}
	if me.posted && (!only || w.item.served[s] == me.seq) {
		r.ask(w, s, out)
	}
}

// post is a post, or a copy of it, that arrives.
func (w *delegWorld) post(s int, seq, life int8) {
	w.posts[s][seq-1] = life + 1
	if w.rows[s].seq < seq {
		w.rows[s] = delegRow{seq: seq, life: life}
	}
}

// answer is an answer, or a copy of it, that arrives.
func (w *delegWorld) answer(s int, seq int8, taken bool) {
	w.answers[s][seq-1] = 1
	if taken {
		w.answers[s][seq-1] = 2
	}
	if w.rows[s].seq <= seq {
		w.rows[s] = delegRow{seq: seq, answered: true, taken: taken}
	}
}

// copies of writes to rows arrive at any time.
func (r delegRules) copies(w delegWorld, s int, out delegStep) {
	for n := range r.mails {
		if life := w.posts[s][n]; life > 0 {
			to := w
			to.post(s, int8(n+1), life-1)
			out("network", fmt.Sprintf("brings post %d of %s once more", n+1, r.slotName(s)), to)
		}
		if kind := w.answers[s][n]; kind > 0 && !r.plain {
			to := w
			to.answer(s, int8(n+1), kind == 2)
			out("network", fmt.Sprintf("brings answer %d of %s once more", n+1, r.slotName(s)), to)
		}
	}
}

// direct is a sender that changes the item itself.
func (r delegRules) direct(w delegWorld, s int, out delegStep) {
	who, me := "sender "+r.slotName(s), w.senders[s]
	if me.image.version == 0 {
		w.senders[s].image = w.item
		out(who, "reads the item", w)
		return
	}
	if w.item.version != me.image.version && !r.unconditional {
		w.senders[s].image = delegItem{}
		out(who, "is refused", w)
		return
	}
	w.item.version++
	w.item.served[s], w.item.taken[s] = me.seq, false
	w.applied[s][me.seq-1]++
	w.decide(s, toldApplied)
	out(who, fmt.Sprint("writes the item with batch ", me.seq), w)
}

func (w *delegWorld) decide(s int, v delegVerdict) {
	me := &w.senders[s]
	me.verdicts[me.seq-1], me.decided, me.image, me.rowRead = v, true, delegItem{}, false
}

// ask is a sender that wants to know what became of its mail: it reads the item, then the
// row, and takes the mail back under the version that it has read.
func (r delegRules) ask(w delegWorld, s int, out delegStep) {
	who, me := "sender "+r.slotName(s), w.senders[s]
	mine := w.mail(s, me.seq, me.life, false)
	switch {
	case r.blanksOnly:
		to := w
		if to.rows[s].seq == me.seq && !to.rows[s].answered {
			to.rows[s].answered, to.rows[s].taken = true, true
			to.decide(s, toldNot)
			out(who, "empties the row", to)
		}
		fallthrough
	case me.image.version == 0:
		to := w
		switch FateOnItem(w.item.view(), mine) {
		case MailServed:
			to.decide(s, toldAs(w.item.taken[s]))
			out(who, "finds the answer on the item", to)
		case MailLost:
			to.decide(s, toldUnknown)
			out(who, "finds another item", to)
		default:
			to.senders[s].image = w.item
			out(who, "finds no answer on the item", to)
		}
	case !me.rowRead:
		to, row := w, w.rows[s]
		fate := FateInRow(w.mail(s, row.seq, row.life, row.answered), int64(me.seq), me.inRow && !r.goneBelieved)
		if !r.ignoresRow && fate == MailServed {
			to.decide(s, toldAs(row.taken))
			out(who, "finds the answer in the row", to)
			return
		}
		if fate == MailLost || me.aged && !r.agedBelieved {
			to.decide(s, toldUnknown)
			out(who, "finds no row that proves anything", to)
			return
		}
		to.senders[s].rowRead = true
		out(who, "finds the commands in the row", to)
	default:
		to := w
		to.senders[s].image, to.senders[s].rowRead = delegItem{}, false
		if w.item.version != me.image.version {
			out(who, "cannot take it back", to)
			return
		}
		to.item.version++
		to.item.served[s], to.item.taken[s] = me.seq, true
		to.decide(s, toldNot)
		out(who, "takes it back", to)
	}
}

func toldAs(taken bool) delegVerdict {
	if taken {
		return toldNot
	}
	return toldApplied
}
