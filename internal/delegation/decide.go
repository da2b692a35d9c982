package delegation

// Mail is what the row of a slot says.
type Mail struct {
	Slot     string
	Seq      int64
	Life     string // of the item when it was put
	Answered bool   // the commands are no longer there
}

// MayServe reports whether a leader may carry out a mail. read is the stretch in which the
// reading of the row began, now the present one: a stretch begins when the leader gets to
// see the item as others have left it. A mail that was read before may have been served, and
// forgotten by the item, meanwhile. life is the item's, known the last number of the slot
// that the leader knows to be served.
func MayServe(m Mail, read, now int64, life string, known int64) bool {
	return read == now && !m.Answered && m.Life == life && m.Seq > known
}

// MailFate is what became of a mail, as far as is known.
type MailFate int

// What may have become of it.
const (
	MailWaits    MailFate = iota // it is not served, as of the reading of the item
	MailServed                   // the answers are there
	MailUnproven                 // the item has moved on, and the row must be read for what it says
	MailLost                     // the evidence is gone with the item
)

// FateOnItem is what an item tells the sender of a mail. That there is no entry proves
// nothing alone: it may have been forgotten.
func FateOnItem(d Evidence, m Mail) MailFate {
	switch s, there := d.Slots[m.Slot]; {
	case d.Life != m.Life:
		return MailLost
	case there && s.Seq == m.Seq:
		return MailServed
	}
	return MailUnproven
}

// FateInRow is what the row of the slot tells, read after an item without an entry. While
// the commands are there, the item had not forgotten them, nor therefore served them, when
// it was read.
//
// arrived says that the mail was in the row. One that has it no more proves nothing: TTL may
// have removed the answers.
func FateInRow(row Mail, seq int64, arrived bool) MailFate {
	switch {
	case row.Seq < seq && arrived:
		return MailLost
	case row.Seq != seq:
		return MailUnproven
	case row.Answered:
		return MailServed
	}
	return MailWaits
}

// MayForget reports whether an item may forget what it says of a slot: the row was seen to
// have the answers of that number, or of a later one.
func MayForget(served, answered int64) bool { return answered >= served }

// MaySend reports whether a slot may have another mail: one at a time. A second one would
// cover the first, of which nobody could say whether it was served.
func MaySend(last int64, decided bool) bool { return last == 0 || decided }
