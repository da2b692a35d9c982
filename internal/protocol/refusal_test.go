package protocol

import (
	"bytes"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// others are the rings of so many writes, newest first.
func others(ids ...byte) (ring []byte) {
	for _, id := range ids {
		ring = append(ring, bytes.Repeat([]byte{id}, stored.RingID)...)
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
