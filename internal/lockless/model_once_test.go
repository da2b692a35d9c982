package lockless

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/beside"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// Calls of one message, which carry its id, on an item that others change under ids
// of their own. A call reads the item first, or writes without. Its attempts may
// stay on their way while epochs pass, and a call that was told "unknown" comes
// again. What an item remembers and forgets is asked of the library's own code.

const (
	maxOnce   = 2
	ourOnce   = 1 // bit of the message's id in a set
	otherOnce = 2 // of the others', who use one each epoch
)

// onceItem is the item: what it remembers, and how often it was written.
type onceItem struct {
	epoch         int8 // 0: it remembers nothing
	present, past int8
	writes        int8 // stands for the ring: a write that has read is bound to it
}

// onceTry is an attempt: what its condition and its update say.
type onceTry struct {
	sent  bool
	run   int8 // of the call that sent it
	made  int8 // when
	first int8 // of one that has not read: as UnreadOnce.First
	read  bool // it has read the item
	base  int8 // writes of the item as read
	epoch int8
	turns bool // it rotates; of one that has read the item: what follows is all
	to    onceItem
}

// onceCall is one delivery of the message.
type onceCall struct {
	phase phase // fresh, holding (knows what to send), ending (waits for an answer), done
	runs  int8  // how often it has come
	try   onceTry
	late  onceTry // the attempt that is still on its way
	open  bool
	lost  int8 // the run that was told that nothing was written, and the last; 0: none
	mine  bool // an attempt of the present run was applied
}

type onceWorld struct {
	item  onceItem
	clock int8
	first int8 // when the request was made that has applied the change; 0: none has yet
	who   [maxOnce]onceCall
}

// onceRules are the bounds of a search and the rules that a mutant breaks.
type onceRules struct {
	reads  [maxOnce]bool // which call reads the item first
	slow   [maxOnce]bool // whose clock is an epoch behind
	clocks int8          // epochs
	writes int8          // of the others
	comes  int8          // how often a call comes

	// Mutants.
	forgetsPast   bool // only the present set is asked
	rotatesBack   bool // a slow clock makes its epoch the present one
	neverAsks     bool // the ids are not looked at
	repeatsFreely bool // a write that has not read demands nothing of the epoch
	goesOn        bool // a call in doubt goes on in whatever epoch the item is
	dropsPresent  bool // a rotation does not keep the present ids

	asked map[onceItem]bool      // what the library said
	made  map[onceWrite]onceItem // what it made
}

// onceWrite is a write of an item that has read it.
type onceWrite struct {
	item       onceItem
	bit, epoch int8
}

// wire is the item as the library reads it.
func (it onceItem) wire() ddb.Item {
	item := ddb.Item{}
	for name, bits := range map[string]int8{"once": it.present, "oncePast": it.past} {
		var ids [][]byte
		for bit := int8(1); bit <= bits; bit <<= 1 {
			if bits&bit != 0 {
				id := onceIDOf(bit)
				ids = append(ids, id[:])
			}
		}
		if ids != nil {
			item[name] = &types.AttributeValueMemberBS{Value: ids}
		}
	}
	if it.epoch > 0 {
		item["onceEpoch"] = ddb.Integer(int64(it.epoch))
	}
	return item
}

func onceIDOf(bit int8) protocol.OnceID { return protocol.OnceID{byte(bit)} }

// set is what the library's write makes of the item.
func (it onceItem) set(sets []ddb.Attribute) onceItem {
	for _, a := range sets {
		switch v := a.Value.(type) {
		case *types.AttributeValueMemberN:
			n, _ := ddb.Int(v)
			it.epoch = int8(n)
		case *types.AttributeValueMemberBS:
			bits := int8(0)
			for _, id := range v.Value {
				bits |= int8(id[0])
			}
			if a.Name == "once" {
				it.present = bits
			} else {
				it.past = bits
			}
		}
	}
	return it
}

var onceCore = protocol.Of(stored.New(&stored.Table{Table: &ddb.Table{Classify: func(err error) error { return err }}, Attr: stored.Attributes{Once: "once"}}))

// remembers asks the library whether an item has an id.
func (r *onceRules) remembers(it onceItem) bool {
	if r.neverAsks {
		return false
	}
	if r.forgetsPast {
		it.past = 0
	}
	at := onceItem{present: it.present, past: it.past}
	known, asked := r.asked[at]
	if !asked {
		known = Remembers(onceCore, at.wire(), onceIDOf(ourOnce))
		r.asked[at] = known
	}
	return known
}

// after is the item after a write that has read it.
func (r *onceRules) after(it onceItem, bit, epoch int8) onceItem {
	if r.rotatesBack && it.epoch > epoch {
		it.epoch = epoch - 1
	}
	it.writes = 0
	next, made := r.made[onceWrite{it, bit, epoch}]
	if !made {
		d, err := beside.Remember(onceCore, it.wire(), onceIDOf(bit), protocol.OnceID{}, int64(epoch), nil)
		if err != nil {
			panic(err)
		}
		next = it.set(d.Set)
		r.made[onceWrite{it, bit, epoch}] = next
	}
	if r.dropsPresent && next.epoch > it.epoch {
		next.past = 0
	}
	return next
}

// fits says whether the condition of an attempt holds, as the expressions of
// UnreadOnce.Add and of writes that have read the item say it.
func (r *onceRules) fits(it onceItem, t onceTry) bool {
	known := r.remembers(it)
	switch {
	case t.read:
		return it.writes == t.base
	case known:
		return false
	case r.repeatsFreely:
		return true
	case t.turns:
		return it.epoch > 0 && it.epoch < t.epoch
	}
	return it.epoch == 0 || it.epoch == t.epoch
}

// write applies an attempt of call i where it fits. One that was made within the
// promised time must never apply what was applied before, however late it comes; nor
// must a call apply it twice, or after it was told that nothing was written.
func (w *onceWorld) write(r *onceRules, i int, t onceTry) (applied bool, wrong string) {
	if !r.fits(w.item, t) {
		return false, ""
	}
	c := &w.who[i]
	promised := int8(1)
	for _, slow := range r.slow {
		if slow { // less what clocks differ by
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
	if t.read {
		t.to.writes = w.item.writes + 1
		w.item = t.to
		return true, wrong
	}
	it := &w.item
	switch {
	case t.turns:
		it.past, it.present, it.epoch = it.present, ourOnce, t.epoch
		if r.dropsPresent {
			it.past = 0
		}
	default:
		it.present |= ourOnce
		it.epoch = max(it.epoch, t.epoch)
	}
	it.writes++
	return true, wrong
}
