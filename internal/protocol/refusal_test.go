package protocol

import (
	"bytes"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// Decisions one by one, as in verdict_test.go.

func TestVerdictOfABreak(t *testing.T) {
	seen := stored.Record{By: stored.NewID("dead"), Timed: true, Lease: time.Minute, Held: 10, Token: 12, Stolen: 3}
	hand := stored.Record{By: "hand", Timed: true, Held: 10, Token: 12, Stolen: 3}
	now := func(change func(*stored.Record)) stored.Record {
		l := seen
		change(&l)
		return l
	}
	ended := func(l *stored.Record) { l.By, l.Timed, l.Held = "", false, 0 }
	for _, c := range []struct {
		name          string
		seen, image   stored.Record
		marked        Verdict
		gone          bool
		clean, repeat Verdict // of a first attempt, and of a later one
	}{
		{"it goes on", seen, now(func(*stored.Record) {}), Undecided, false, Lost, Lost},
		{"it goes on by hand", seen, now(func(l *stored.Record) { l.By = "hand" }), Undecided, false, Lost, Lost},
		{"its holder has ended it", seen, now(ended), Undecided, false, Lost, Lost},
		{"it was broken", seen, now(func(l *stored.Record) { ended(l); l.Stolen = 10 }), Undecided, false, Committed, Committed},
		{"one after it was broken", seen, now(func(l *stored.Record) { ended(l); l.Stolen = 11 }), Undecided, false, Undecided, Undecided},
		{"the item is gone", seen, stored.Record{}, Undecided, true, Undecided, Undecided},
		{"the item was made anew", seen, now(func(l *stored.Record) { ended(l); l.Token = 9 }), Undecided, false, Undecided, Undecided},
		{"by hand, and marked", hand, now(ended), Committed, false, Committed, Committed},
		{"by hand, and not marked", hand, now(ended), Undecided, false, Lost, Undecided},
	} {
		if got := JudgeBreak(c.image, c.seen, c.marked, !c.gone, true); got != c.clean {
			t.Errorf("%s: %v, want %v", c.name, got, c.clean)
		}
		if got := JudgeBreak(c.image, c.seen, c.marked, !c.gone, false); got != c.repeat {
			t.Errorf("%s, after an attempt without an answer: %v, want %v", c.name, got, c.repeat)
		}
	}
}

// An answer that does not prove that a transaction was never applied is followed by no
// other transaction.
func TestTheStepAfterAnAnswer(t *testing.T) {
	for _, c := range []struct {
		answer   Answer
		evidence Verdict
		last     bool
		want     Step
	}{
		{Silence, Undecided, false, FindOut},
		{Silence, Lost, false, FindOut},
		{Silence, Expired, false, FindOut},
		{Silence, Committed, false, Conclude},
		{Success, Undecided, false, Conclude},
		{Condition, Undecided, false, FindOut},
		{Condition, Lost, false, SendOther},
		{Condition, Expired, false, SendOther},
		{Condition, Committed, false, Conclude},
		{Busy, Undecided, false, SendSame},
		{Busy, Undecided, true, FindOut},
		{Busy, Lost, false, SendOther},
		{Busy, Committed, true, Conclude},
		{Denied, Undecided, false, Fail},
		{Denied, Committed, false, Conclude},
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
		id := NewMark()
		ring = append(ring, id[:]...)
	}
	return ring
}

// However often others are refused by a lock that says nothing, they push no write out of
// sight.
func TestMarksLeaveAFullRingFirst(t *testing.T) {
	mine := NewWriteID()
	ring := func(v types.AttributeValue) []byte { return v.(*types.AttributeValueMemberB).Value }
	now := ring(mine.Push(others(1, 2, 3)))
	for range 20 {
		now = ring(NewMark().Push(now))
	}
	if len(now) != stored.RingLen || RingVerdict(mine, others(1, 2, 3), now) != Committed {
		t.Errorf("the write is out of sight: %x", now)
	}
}

// What a refusal tells of which no attempt is in doubt: it may be that of a copy.
func TestWhatARefusalTells(t *testing.T) {
	mine := WriteID(others(9))
	eight := others(1, 2, 3, 4, 5, 6, 7, 8)
	for name, c := range map[string]struct {
		of   Refusal
		want Verdict
	}{
		"it has ours":                               {Refusal{Base: others(1), Now: others(2, 9, 1), Counted: true, Since: 2}, Committed},
		"it has what was read, and not ours":        {Refusal{Base: others(1), Now: others(2, 1), Counted: true, Since: 1}, Lost},
		"only a lock stands in the way":             {Refusal{Unmoved: true}, Lost},
		"all writes since are in sight":             {Refusal{Base: others(20), Now: eight, Counted: true, Since: 8}, Lost},
		"a write since is out of sight":             {Refusal{Base: others(20), Now: eight, Counted: true, Since: 9}, Undecided},
		"marks may have pushed it out of sight":     {Refusal{Base: others(20), Now: marks(8), Counted: true, Since: 1}, Undecided},
		"nothing has left the ring but for a mark":  {Refusal{Base: others(20), Now: marks(1), Counted: true, Since: 1}, Lost},
		"no write has left the ring":                {Refusal{Now: others(1, 2)}, Lost},
		"writes may have left the ring":             {Refusal{Now: eight}, Undecided},
		"what is to be deleted has gone":            {Refusal{Base: others(1), Gone: true, Removes: true, Counted: true}, Undecided},
		"what is to be changed has gone":            {Refusal{Base: others(1), Gone: true, Counted: true}, Lost},
		"what is to be deleted is there, with more": {Refusal{Base: others(1), Now: others(2, 1), Removes: true, Counted: true, Since: 1}, Lost},
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
	if d.Open() || d.End() != Lost {
		t.Error("in doubt, and every attempt was refused")
	}
	d.Sent(false)
	d.Sent(true)
	if !d.Open() || d.End() != Undecided {
		t.Error("not in doubt, and an attempt had no answer")
	}
	if v, final := d.Save(WriteID(others(9)), others(1), false, 3, 3); v != Lost || final {
		t.Errorf("a save at its version: %v, final %v: only a lock can be in its way", v, final)
	}
	if v, final := d.Event(WriteID(others(9)), others(1), 0); v != Committed || !final {
		t.Errorf("the same event: %v, final %v: it is there", v, final)
	}
}

// A ring stands for all writes since the item was read if the version has moved by as
// many.
func TestRingsThatVersionsCount(t *testing.T) {
	c := Of(stored.New(&stored.Table{Table: &ddb.Table{Partition: "id"}, Version: "version", Attr: stored.Attributes{Writers: "writers"}}))
	image := func(version int64, ids ...byte) ddb.Item {
		return ddb.Item{"id": ddb.Text("x"), "version": ddb.Integer(version), "writers": ddb.Bytes(others(ids...))}
	}
	read := image(3, 20)
	for name, row := range map[string]struct {
		now  ddb.Item
		want Verdict
	}{
		"two writes, two ids":   {image(5, 1, 2), Lost},
		"three writes, two ids": {image(6, 1, 2), Undecided},
		"one write, two ids":    {image(4, 1, 2), Undecided},
		"ours among them":       {image(6, 1, 9), Committed},
	} {
		if got := c.RingSince(WriteID(others(9)), read, row.now); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
