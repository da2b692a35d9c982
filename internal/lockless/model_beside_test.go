package lockless

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/beside"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// Calls of one message, as in the model of operation ids, on an item that has room for so
// few ids that others' ids and the message's own go to rows beside it, and come to be
// forgotten there. What lies between the look at an item, the look at the row, and the
// write, is a step for others. A call may be that of an earlier program, which knows of no
// rows. What goes where, and what a mark means, is asked of the library's own code.

const maxBeside = 2

// The ids, as bits of a set: the message's, and those of others.
const (
	ourID    = 1
	otherID  = 2
	anotherD = 4
)

// besideItem is the item: what it remembers, its mark, and how often it was written.
type besideItem struct {
	epoch         int8 // 0: it remembers nothing
	present, past int8
	rows          bool // the mark says that there are rows
	moves, moved  int8
	writes        int8
}

// sameMark reports whether two images have one mark.
func (it besideItem) sameMark(other besideItem) bool {
	return it.epoch == other.epoch && it.rows == other.rows && it.moves == other.moves && it.moved == other.moved
}

func (it besideItem) has(bit int8) bool { return (it.present|it.past)&bit != 0 }

// besideTry is an attempt: what its condition and its update say.
type besideTry struct {
	sent             bool
	run, made, first int8
	form             besideForm
	seen             besideItem // what it demands to be there
	epoch            int8
	to               besideItem // what follows, but for the forms that add
}

type besideForm int8

const (
	firstTry besideForm = iota // it has read nothing: it demands the epoch of its clock, as a number
	asRead                     // the item is as it was read
	atMark                     // the mark is as it was seen
	turning                    // the same, and the write begins an epoch
	moving                     // the ids are as they were seen, and go
)

// besideCall is one delivery of the message.
type besideCall struct {
	phase  besidePhase
	runs   int8
	image  besideItem // that it works on
	asked  bool       // it has read the row
	under  besideItem // of this image's mark
	inRow  bool       // and found the id there
	try    besideTry
	late   besideTry
	open   bool
	lost   int8
	mine   bool
	before int8 // epoch of the first try
}

type besidePhase int8

const (
	notYet     besidePhase = iota
	consulting             // it has an image, and asks for what lies beside
	ready                  // it knows what to send
	awaiting               // an answer
	ended
)

type besideWorld struct {
	item  besideItem
	row   [3]int8 // by id: the epoch of its row; 0: there is none
	clock int8
	first int8
	who   [maxBeside]besideCall
}

// besideRules are the bounds of a search and the rules that a mutant breaks.
type besideRules struct {
	reads, old [maxBeside]bool
	early      [maxBeside]bool // it may ask for the row before it sees the item
	slow       [maxBeside]bool
	clocks     int8
	writes     int8
	comes      int8

	// Mutants.
	neverAsks   bool // the row is not read
	asksFirst   bool // it is read before the item
	marksLater  bool // it is read before the mark is seen under which it is believed
	keepsAnswer bool // what it said is believed under another mark
	unbound     bool // a write that has not read the item does not demand the mark
	putsLater   bool // whoever moves ids puts their rows behind the write, or never
	oneMark     bool // a second move leaves the same mark
	oldComeIn   bool // an earlier program does not see that there are rows
	endsEarly   bool // a row ends with the epoch after its own
	forgets     bool // the rows are given up an epoch too early

	wires map[besideItem]ddb.Item
	moved map[besideWrite]besideMove
}

// besideWrite is a write under an id, based on an item.
type besideWrite struct {
	item       besideItem
	bit, epoch int8
	blind, old bool
}

// besideMove is what the library makes of it: the item then, and which ids go to rows, of
// which epochs.
type besideMove struct {
	to   besideItem
	goes bool
	rows [3]int8
}

var besideCore = func() *protocol.Core {
	c := protocol.Of(stored.New(&stored.Table{Table: &ddb.Table{Classify: func(err error) error { return err }, Partition: "id"},
		Attr: stored.Attributes{Once: "once", LockedBy: "lockedBy"}}))
	c.OnceRoom = 1
	return c
}()

// wire is the item as the library reads it.
func (r *besideRules) wire(it besideItem) ddb.Item {
	it.writes = 0
	if item, ok := r.wires[it]; ok {
		return item
	}
	item := onceItem{epoch: 0, present: it.present, past: it.past}.wire()
	if it.epoch > 0 {
		m := stored.Mark{Epoch: int64(it.epoch)}
		if it.rows {
			m.Rows, m.Moves, m.Moved = "r", int64(it.moves), int64(it.moved)
		}
		item["onceEpoch"] = m.Value()
	}
	r.wires[it] = item
	return item
}

// read is the item of a wire.
func readBeside(item ddb.Item) (it besideItem) {
	sets := map[string]*int8{"once": &it.present, "oncePast": &it.past}
	for name, bits := range sets {
		for _, id := range protocol.EntriesOf(item[name]) {
			*bits |= int8(id[0])
		}
	}
	if m := besideCore.MarkOf(item); m.Epoch >= 0 {
		it.epoch, it.rows = int8(m.Epoch), m.Rows != ""
		it.moves, it.moved = int8(m.Moves), int8(m.Moved)
	}
	return it
}

// after is the item after a write under an id that is based on it.
func (r *besideRules) after(w besideWrite) besideMove {
	w.item.writes = 0
	if m, ok := r.moved[w]; ok {
		return m
	}
	item, out := r.wire(w.item), besideMove{}
	id := onceIDOf(w.bit)
	var move *beside.Move
	if !w.old {
		move = beside.MoveFor(besideCore, item, id, protocol.OnceID{}, int64(w.epoch), w.blind)
	}
	if move != nil {
		out.goes = true
		for _, row := range move.Rows {
			for _, entry := range row.Entries {
				out.rows[bitIndex(int8(entry[0]))] = int8(row.Epoch) //nolint:gosec // a few epochs
			}
		}
	}
	d, err := beside.Remember(besideCore, item, id, protocol.OnceID{}, int64(w.epoch), move)
	if err != nil {
		panic(err)
	}
	out.to = readBeside(applied(item, d))
	if r.oneMark && out.goes && w.item.rows {
		out.to.moves, out.to.moved = w.item.moves, w.item.moved
	}
	if r.forgets && out.to.rows && !out.goes && out.to.epoch > out.to.moved {
		out.to.rows, out.to.moves, out.to.moved = false, 0, 0
	}
	r.moved[w] = out
	return out
}

func bitIndex(bit int8) int { return map[int8]int{ourID: 0, otherID: 1, anotherD: 2}[bit] }

// applied is an item after a difference.
func applied(item ddb.Item, d ddb.Diff) ddb.Item {
	after := ddb.Item{}
	for name, v := range item {
		after[name] = v
	}
	for _, a := range d.Set {
		after[a.Name] = a.Value
	}
	for _, name := range d.Remove {
		delete(after, name)
	}
	return after
}

// beside reports whether an image says that rows may matter, to a call at an epoch, and
// inRow whether the row has the message's id for it.
func (r *besideRules) beside(it besideItem, epoch int8) bool {
	return besideCore.MarkOf(r.wire(it)).Beside(int64(epoch))
}

func (r *besideRules) inRow(it besideItem, row, epoch int8) bool {
	if row == 0 {
		return false
	}
	id := onceIDOf(ourID)
	wire := ddb.Item{"once": &types.AttributeValueMemberBS{Value: [][]byte{id[:]}}, "onceEpoch": ddb.Integer(int64(row))}
	return beside.InRow(besideCore, r.wire(it), wire, int64(epoch)) != nil
}

// fits says whether the condition of an attempt holds, as the expressions of UnreadOnce.Add
// and of writes that have read the item say it.
func (r *besideRules) fits(it besideItem, t besideTry) bool {
	known := it.has(ourID)
	switch t.form {
	case asRead:
		return it.writes == t.seen.writes
	case moving:
		return it.sameMark(t.seen) && it.present == t.seen.present && it.past == t.seen.past
	case atMark, turning:
		return !known && (r.unbound || it.sameMark(t.seen))
	}
	return !known && (r.unbound || it.epoch == 0 || !it.rows && it.epoch == t.epoch)
}

// write applies an attempt of call i where it fits.
func (w *besideWorld) write(r *besideRules, i int, t besideTry) (done bool, wrong string) {
	if !r.fits(w.item, t) {
		return false, ""
	}
	c := &w.who[i]
	promised := int8(1)
	for _, slow := range r.slow {
		if slow {
			promised = 0
		}
	}
	switch {
	case w.first > 0 && t.made <= w.first+promised:
		wrong = "a change is applied twice"
	case c.mine && t.run == c.runs:
		wrong = "a call applies its change twice"
	case c.lost == t.run:
		wrong = "a change is applied after its call was told that nothing was written"
	}
	if w.first == 0 {
		w.first = t.made
	}
	c.mine = c.mine || t.run == c.runs
	writes := w.item.writes + 1
	switch t.form {
	case asRead, moving:
		w.item = t.to
	case turning:
		w.item.past, w.item.present = w.item.present, ourID
		w.item.epoch, w.item.rows, w.item.moves, w.item.moved = t.to.epoch, t.to.rows, t.to.moves, t.to.moved
	default:
		w.item.present |= ourID
		w.item.epoch = max(w.item.epoch, t.epoch)
	}
	w.item.writes = writes
	return true, wrong
}
