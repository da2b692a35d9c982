package delegate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/delegation"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// round is one write of the item, with all commands that it carries out. It is made as
// every change without a lock is made (internal/cas), which knows locks, versions, event
// times, and what became of a write without an answer.
type round struct {
	l      *line
	own    *batch   // carried out directly: its mail was never put
	expect ddb.Item // the item that it starts from; nil: whatever is read
	term   *term    // nil: nobody leads
	mails  []mail
	leaves bool // the leader steps down
	full   bool // the item has no room for the answers to one mail: its sender is to carry it out
	ids    ids  // of operations
	claims claimers
	hands  hands

	// What came of the last edit.
	ran     bool
	from    atomic.Pointer[ddb.Item] // what it was made on
	foreign ddb.Item                 // the item as others have left it; nil: they have not
	count   int64
	served  map[string]delegation.Served
	left    delegation.Evidence // what the write leaves
}

// errElsewhere ends a round that has met another writer. Nothing was written.
var errElsewhere = errors.New("others want the item")

// elsewhere reports whether a round has ended so.
func (r *round) elsewhere(err error) bool {
	return errors.Is(err, errElsewhere) && !errors.Is(err, repo.ErrOutcomeUnknown)
}

// run makes the round, and returns the item as it left it.
func (r *round) run(ctx context.Context) (after ddb.Item, err error) {
	e := r.l.e
	ctx, told := e.core.Observe.Shared(ctx, telemetry.Delegate, "Round", nil)
	defer told.End(&err)
	defer r.witness(ctx)()
	policy := e.policy
	if r.term != nil {
		policy.Hedge = e.hedge(r.l.late())
	}
	var trace cas.Trace
	for from := r.expect; ; {
		_, trace, err = cas.Run(ctx, e.table, &policy, r.l.key, r.l.raw, typed.Request{
			From: from, Edit: r.edit, Count: func() int64 { return r.count }, Keep: func() bool { return r.term != nil },
		})
		if len(r.mails) > 0 && r.claims.refuse(err) {
			continue
		}
		if !errors.Is(err, errNoRing) {
			break
		}
		if from, err = r.begin(ctx, *r.from.Load()); err != nil {
			return nil, err
		}
		if r.expect != nil {
			r.expect = from
		}
	}
	if err == nil && r.count > 0 {
		e.core.Observe.Batch(ctx, telemetry.Delegate, int(r.count))
		told.Changes(int(r.count))
	}
	return trace.After, err
}

// edit carries out commands on the item as it is, if it has a ring.
func (r *round) edit(ctx context.Context, from typed.Snapshot) (typed.Edit, error) {
	r.hands.of = r.l
	defer r.hands.end()
	edit, err := r.carryOut(ctx, from)
	if err == nil && r.needsRing(from.Raw, edit) {
		r.ran, err = false, errNoRing
	}
	return edit, err
}

func (r *round) carryOut(ctx context.Context, from typed.Snapshot) (typed.Edit, error) {
	core := r.l.e.core
	d, err := delegation.Of(core.Table, from.Raw)
	if err != nil {
		return typed.Edit{}, err
	}
	if r.moved(from.Raw, d) {
		r.foreign = from.Raw
		return typed.Edit{}, errElsewhere
	}
	r.ran, r.count = true, 0
	r.claims.begin()
	r.from.Store(&from.Raw)
	r.consult(ctx, from.Raw)
	total := typed.NewTotal(r.l.e.table, from)
	at := typed.Version(core, from.Raw) + 1
	r.served = map[string]delegation.Served{}
	if r.own != nil {
		r.own.answers, r.own.changed = r.all(ctx, total, r.own.orders())
		if r.term != nil {
			r.served[r.l.slot] = delegation.Served{Seq: r.own.seq, At: at} // who leads knows the answers
		}
	}
	size := 0
	for _, m := range r.mails {
		if size > mostAnswers {
			break // the next round has them
		}
		s := delegation.Served{Seq: m.Seq, At: at, Answers: r.mailed(ctx, total, m.orders)}
		r.served[m.Slot], size = s, size+s.Bytes(m.Slot)
	}
	edit := total.Edit()
	if r.term == nil {
		return edit, nil
	}
	r.left = r.term.next(d, r.served, r.leaves)
	if err := typed.CheckCount(r.l.e.table, from.Item); err != nil {
		return edit, err
	}
	edit.Diff.Set = append(edit.Diff.Set, ddb.Attribute{Name: core.Delegated, Value: r.left.Value()})
	err = core.CheckSize(from.Raw, edit.Diff)
	if err != nil && len(r.mails) > 0 { // fewer answers may fit
		if r.full = len(r.mails) == 1 && !r.full; !r.full {
			r.mails = r.mails[:len(r.mails)/2]
		}
		return r.carryOut(ctx, from)
	}
	return edit, err
}

// moved reports whether others have written since the round's start.
func (r *round) moved(image ddb.Item, d delegation.Evidence) bool {
	if r.term == nil {
		return r.ran || d.Lead != ""
	}
	return r.expect != nil && !sameWrite(r.l.e.core, image, r.expect)
}

// sameWrite reports whether two images are of the same write of an item.
func sameWrite(core *protocol.Core, a, b ddb.Item) bool {
	return bytes.Equal(core.Ring(a), core.Ring(b)) && typed.Version(core, a) == typed.Version(core, b)
}

// all carries out commands of this process, and says which of them have changed the item.
func (r *round) all(ctx context.Context, total *typed.Total, orders []order) (answers []string, changed []bool) {
	for _, o := range orders {
		before := r.count
		answers = append(answers, r.one(ctx, total, o))
		changed = append(changed, r.count > before)
	}
	return answers, changed
}

// mailed carries out a mail: all of its commands are known here, and there is room for their
// answers, or none is touched.
func (r *round) mailed(ctx context.Context, total *typed.Total, orders []order) (answers []string) {
	for _, o := range orders {
		if r.full || r.l.e.command(o.command) == nil {
			return []string{unknown}
		}
	}
	answers, _ = r.all(ctx, total, orders)
	return answers
}

// one carries out one command on what those before it have left.
func (r *round) one(ctx context.Context, total *typed.Total, o order) (answer string) {
	e := r.l.e
	var edit typed.Edit
	err := r.hands.run(o.command, func() {
		var err error
		if edit, answer, err = r.change(ctx, total, o); err != nil {
			edit, answer = typed.Edit{}, e.refuse(err)
		}
	})
	if err != nil {
		edit, answer = typed.Edit{}, refused+"\x00"+err.Error()
		_ = r.hands.run(o.command, func() { answer = e.refuse(err) })
	}
	if err := r.claims.next(e.core, edit); err != nil {
		edit, answer = typed.Edit{}, e.refuse(err)
	}
	if !edit.Diff.Empty() {
		total.Add(edit.Diff, edit.After, e.table.Version(edit.Item)+1)
		r.count++
	}
	return answer
}

// change runs a command on a copy of the item.
func (r *round) change(ctx context.Context, total *typed.Total, o order) (edit typed.Edit, answer string, err error) {
	e := r.l.e
	start, err := total.Next()
	if err != nil {
		return edit, "", err
	}
	run := typed.Inside(e.table, r.l.raw, func(ctx context.Context, item any) error {
		answer, err = e.command(o.command).run(ctx, item, o.args)
		answer = done + answer
		return err
	})
	once := r.ids[o.once]
	edit, err = typed.ChangeOnce(ctx, e.table, start, run, once)
	if once.Found() {
		answer = repeated
	}
	if err == nil && edit.Remove {
		err = fmt.Errorf("%w: a command cannot remove the item", repo.ErrConfig)
	}
	if err == nil {
		err = typed.CheckNotStale(e.core, start.Raw, edit.After)
	}
	return edit, answer, err
}

// next is what a write of the leader leaves: what it has served, and what is not forgotten.
func (t *term) next(d delegation.Evidence, served map[string]delegation.Served, leaves bool) delegation.Evidence {
	next := delegation.Evidence{Life: d.Life, Lead: t.id, Shards: t.shards, Slots: maps.Clone(d.Slots)}
	if next.Life == "" {
		next.Life = newID()
	}
	if next.Slots == nil {
		next.Slots = map[string]delegation.Served{}
	}
	for slot, s := range next.Slots {
		if delegation.MayForget(s.Seq, t.answered(slot)) {
			delete(next.Slots, slot)
		}
	}
	maps.Copy(next.Slots, served)
	next.Rows = t.rows || t.outgrown(next)
	if leaves {
		next.Lead, next.Rows, next.Shards = "", false, t.fewer()
	}
	return next
}
