package lockless

import (
	"bytes"
	"testing"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// An answer that does not prove that a transaction was never applied is followed by no
// other transaction.
func TestTheStepAfterAnAnswer(t *testing.T) {
	for _, c := range []struct {
		answer   Answer
		evidence protocol.Verdict
		last     bool
		want     Step
	}{
		{Silence, protocol.Undecided, false, FindOut},
		{Silence, protocol.Lost, false, FindOut},
		{Silence, protocol.Expired, false, FindOut},
		{Silence, protocol.Committed, false, Conclude},
		{Success, protocol.Undecided, false, Conclude},
		{Condition, protocol.Undecided, false, FindOut},
		{Condition, protocol.Lost, false, SendOther},
		{Condition, protocol.Expired, false, SendOther},
		{Condition, protocol.Committed, false, Conclude},
		{Busy, protocol.Undecided, false, SendSame},
		{Busy, protocol.Undecided, true, FindOut},
		{Busy, protocol.Lost, false, SendOther},
		{Busy, protocol.Committed, true, Conclude},
		{Denied, protocol.Undecided, false, Fail},
		{Denied, protocol.Committed, false, Conclude},
	} {
		if got := c.answer.Next(c.evidence, c.last); got != c.want {
			t.Errorf("answer %v, evidence %v, last %v: step %v, want %v", c.answer, c.evidence, c.last, got, c.want)
		}
	}
}

// others are the rings of so many writes, newest first.
func others(ids ...byte) (ring []byte) {
	for _, id := range ids {
		ring = append(ring, bytes.Repeat([]byte{id}, stored.RingID)...)
	}
	return ring
}

// marks are a ring of so many ids of nobody's.
func marks(n int) (ring []byte) {
	for range n {
		id := protocol.NewMark()
		ring = append(ring, id[:]...)
	}
	return ring
}

// What a refusal tells of which no attempt is in doubt: it may be that of a copy.
func TestWhatARefusalTells(t *testing.T) {
	mine := protocol.WriteID(others(9))
	eight := others(1, 2, 3, 4, 5, 6, 7, 8)
	for name, c := range map[string]struct {
		of   Refusal
		want protocol.Verdict
	}{
		"it has ours":                               {Refusal{Base: others(1), Now: others(2, 9, 1), Counted: true, Since: 2}, protocol.Committed},
		"it has what was read, and not ours":        {Refusal{Base: others(1), Now: others(2, 1), Counted: true, Since: 1}, protocol.Lost},
		"only a lock stands in the way":             {Refusal{Unmoved: true}, protocol.Lost},
		"all writes since are in sight":             {Refusal{Base: others(20), Now: eight, Counted: true, Since: 8}, protocol.Lost},
		"a write since is out of sight":             {Refusal{Base: others(20), Now: eight, Counted: true, Since: 9}, protocol.Undecided},
		"marks may have pushed it out of sight":     {Refusal{Base: others(20), Now: marks(8), Counted: true, Since: 1}, protocol.Undecided},
		"nothing has left the ring but for a mark":  {Refusal{Base: others(20), Now: marks(1), Counted: true, Since: 1}, protocol.Lost},
		"no write has left the ring":                {Refusal{Now: others(1, 2)}, protocol.Lost},
		"writes may have left the ring":             {Refusal{Now: eight}, protocol.Undecided},
		"what is to be deleted has gone":            {Refusal{Base: others(1), Gone: true, Removes: true, Counted: true}, protocol.Undecided},
		"what is to be changed has gone":            {Refusal{Base: others(1), Gone: true, Counted: true}, protocol.Lost},
		"what is to be deleted is there, with more": {Refusal{Base: others(1), Now: others(2, 1), Removes: true, Counted: true, Since: 1}, protocol.Lost},
	} {
		d := &Doubt{}
		if got := d.AsRead(mine, c.of); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// An attempt without an answer is in doubt until there is evidence.
func TestDoubtLasts(t *testing.T) {
	d := &Doubt{}
	d.Sent(true)
	if d.Open() || d.End() != protocol.Lost {
		t.Error("in doubt, and every attempt was refused")
	}
	d.Sent(false)
	d.Sent(true)
	if !d.Open() || d.End() != protocol.Undecided {
		t.Error("not in doubt, and an attempt had no answer")
	}
	if v, final := d.Save(protocol.WriteID(others(9)), others(1), false, 3, 3); v != protocol.Lost || final {
		t.Errorf("a save at its version: %v, final %v: only a lock can be in its way", v, final)
	}
	if v, final := d.Event(protocol.WriteID(others(9)), others(1), 0); v != protocol.Committed || !final {
		t.Errorf("the same event: %v, final %v: it is there", v, final)
	}
}

// A ring stands for all writes since the item was read if the version has moved by as
// many.
func TestRingsThatVersionsCount(t *testing.T) {
	c := protocol.Of(stored.New(&stored.Table{Table: &ddb.Table{Partition: "id"}, Version: "version", Attr: stored.Attributes{Writers: "writers"}}))
	image := func(version int64, ids ...byte) ddb.Item {
		return ddb.Item{"id": ddb.Text("x"), "version": ddb.Integer(version), "writers": ddb.Bytes(others(ids...))}
	}
	read := image(3, 20)
	for name, row := range map[string]struct {
		now  ddb.Item
		want protocol.Verdict
	}{
		"two writes, two ids":   {image(5, 1, 2), protocol.Lost},
		"three writes, two ids": {image(6, 1, 2), protocol.Undecided},
		"one write, two ids":    {image(4, 1, 2), protocol.Undecided},
		"ours among them":       {image(6, 1, 9), protocol.Committed},
	} {
		if got := RingSince(c, protocol.WriteID(others(9)), read, row.now); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

// An item tells of a transaction without an answer if something that was read of it is in
// sight, and it is not as it was read.
func TestWhatAPartTells(t *testing.T) {
	c := protocol.Of(stored.New(&stored.Table{Table: &ddb.Table{Partition: "id"}, Version: "version", Attr: stored.Attributes{Writers: "writers"}}))
	image := func(version int64, ids ...byte) ddb.Item {
		return ddb.Item{"id": ddb.Text("x"), "version": ddb.Integer(version), "writers": ddb.Bytes(others(ids...))}
	}
	read := image(3, 20, 21)
	for name, row := range map[string]struct {
		now                      ddb.Item
		writes, removes, checked protocol.Verdict
	}{
		"others have written":            {image(5, 1, 2, 20, 21), protocol.Lost, protocol.Lost, protocol.Undecided},
		"it has ours":                    {image(5, 1, 9, 20, 21), protocol.Committed, protocol.Undecided, protocol.Undecided},
		"it is as it was read":           {read, protocol.Undecided, protocol.Undecided, protocol.Undecided},
		"it may have been made anew":     {image(5, 1, 2), protocol.Undecided, protocol.Undecided, protocol.Undecided},
		"nothing that was read is there": {image(9, 1, 2, 3), protocol.Undecided, protocol.Undecided, protocol.Undecided},
		"it is gone":                     {nil, protocol.Undecided, protocol.Undecided, protocol.Undecided},
	} {
		for p, want := range map[*Part]protocol.Verdict{{Base: read, Writes: true}: row.writes, {Base: read, Removes: true}: row.removes, {Base: read}: row.checked} {
			id := protocol.WriteID(others(9))
			if got := JudgePart(c, *p, id, row.now, false); got != want {
				t.Errorf("%s: %v, want %v of %+v", name, got, want, *p)
			}
			if got := JudgeLooks(LookAt(c, *p, id, row.now)); p.Writes && got != want {
				t.Errorf("%s: looks tell %v, want %v", name, got, want)
			}
		}
	}
}
