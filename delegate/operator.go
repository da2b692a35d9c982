package delegate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/delegation"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Mails are the commands that wait at the items of a table, for operators: who reads them
// needs to know none of the commands.
type Mails struct {
	e    *engine
	keys *repo.KeyTable
}

// MailsOf is the mail of a table's items. mail is what the programs have as Config.Mail.
func MailsOf(items, mail *repo.KeyTable) (*Mails, error) {
	at := items
	if mail != nil {
		at = mail
	}
	core := protocol.Of(link.Table(items))
	box, err := newMailbox(at, core.Name, mail != nil)
	return &Mails{&engine{core: core, mail: box}, items}, err
}

// State is what an item and the rows beside it say.
type State struct {
	Leader     string // random, for one time of leading; "": nobody leads
	Partitions int    // over which mail is spread; 0: nobody has met others here
	Waiting    []Waiting
}

// Waiting is the commands of one process that are sent, and not carried out.
type Waiting struct {
	Slot     string
	Number   int64
	Commands []string  // names
	Sent     time.Time // by the sender's clock
	Late     bool      // too old: others leave it to its sender, who may be gone
}

// Of reads an item and its mail, the oldest first: a read and a query for each of 64
// partitions.
func (m *Mails) Of(ctx context.Context, key repo.Key) (s State, err error) {
	l, err := m.at(key)
	if err != nil {
		return s, err
	}
	image, err := l.read(ctx)
	if err != nil {
		return s, err
	}
	d, err := delegation.Of(m.e.core.Table, image)
	if err != nil || d.Life == "" {
		return s, err
	}
	s.Leader, s.Partitions = d.Lead, d.Shards
	now := m.e.core.Clock()
	for shard := range delegation.MostShards {
		mails, err := m.e.mail.look(ctx, l.base, shard)
		if err != nil {
			return s, err
		}
		for _, one := range mails {
			if !delegation.MayServe(one.Mail, 0, 0, d.Life, d.Slots[one.Slot].Seq) {
				continue
			}
			w := Waiting{Slot: one.Slot, Number: one.Seq, Sent: one.until.Add(-carried), Late: one.until.Before(now)}
			for _, o := range one.orders {
				w.Commands = append(w.Commands, o.command)
			}
			s.Waiting = append(s.Waiting, w)
		}
	}
	slices.SortFunc(s.Waiting, func(a, b Waiting) int { return a.Sent.Compare(b.Sent) })
	return s, nil
}

// TakeOut takes out what waits: it is not applied from then on, and a sender who lives is
// told so. ErrNotFound: it waits no more.
func (m *Mails) TakeOut(ctx context.Context, key repo.Key, slot string, number int64) error {
	l, err := m.at(key)
	if err != nil {
		return err
	}
	row, err := m.e.mail.get(ctx, l.base, slot, ddb.Options{})
	if err != nil {
		return err
	}
	gone := fmt.Errorf("%w: number %d of %s waits no more", repo.ErrNotFound, number, slot)
	if row.Answered || row.Seq != number {
		return gone
	}
	l.slot = slot
	b := newBatch([]*caller{{ctx: ctx}})
	defer b.cancel(nil)
	b.seq, b.life, b.inRow = number, row.Life, true
	fate, answers, err := l.takeBack(b)
	switch {
	case fate == delegation.MailUnproven:
		return lock.UnknownOutcome(m.e.core.Table, key, err)
	case isTaken(answers):
		return nil
	}
	return gone
}

// at is the line of an item, of which nobody waits.
func (m *Mails) at(key repo.Key) (*line, error) {
	raw, err := m.keys.EncodeKey(key)
	if err != nil {
		return nil, err
	}
	return &line{e: m.e, key: lock.OwnKey(m.keys, key, raw), raw: raw, base: m.e.mail.base(m.e.core.KeyText(raw))}, nil
}

// errTakenOut is what a sender is told of a mail that an operator took out.
var errTakenOut = errors.New("an operator took the command out: it is not applied")
