package ticket_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// What an item must look like for anybody to go in by it.

// tamper changes attributes of a queue's item by hand; nil removes one.
func (b bench) tamper(t testing.TB, changes ddb.Item) {
	t.Helper()
	item := b.raw(t, "door")
	for name, v := range changes {
		if item[name] = v; v == nil {
			delete(item, name)
		}
	}
	b.put(t, item)
}

// The count of the entries is there to refuse TryLock by a condition. Where it
// is wrong, the entries decide.
func TestTryLockBelievesTheEntriesAndNotTheCount(t *testing.T) {
	for name, count := range map[string]types.AttributeValue{"zero": ddb.Integer(0), "none": nil} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			turn := lock(t, b.queue(t, ticket.Config{}), "door")
			b.tamper(t, ddb.Item{"n": count})
			other := b.queue(t, ticket.Config{})
			for range 2 {
				second, err := other.TryLock(t.Context(), "door")
				var held *repo.LockedError
				if second != nil || !errors.As(err, &held) || held.Token != turn.Number() {
					t.Fatalf("beside the turn %d: %v, error %v", turn.Number(), second, err)
				}
				rig.Is(t, err, repo.ErrLocked, repo.ErrSchema) // and says what is wrong with the item
			}
			item := b.raw(t, "door")
			if item["w_"] != nil || len(list(t, other)) != 1 {
				t.Errorf("the item is %v, want the holder's entry alone", item)
			}
			rig.Is(t, context.Cause(turn.Context()))
		})
	}
	t.Run("a dead holder", func(t *testing.T) {
		b := newBench(t)
		stale(t, b, 1)
		b.tamper(t, ddb.Item{"n": ddb.Integer(0)})
		_, err := b.queue(t, ticket.Config{}).TryLock(t.Context(), "door")
		rig.Is(t, err, repo.ErrSchema)
		if errors.Is(err, repo.ErrLocked) {
			t.Errorf("nobody alive is there: %v", err)
		}
	})
}

func list(t testing.TB, q *ticket.Queue) []ticket.Entry {
	t.Helper()
	return rig.Must(q.List(t.Context(), "door"))(t)
}

// Numbers that no protocol has written let nobody in. What a condition can see
// is refused, and nothing is written; of what only the answer shows the own
// entry is taken back.
func TestNumbersThatLetNobodyIn(t *testing.T) {
	now := time.Now()
	end := ddb.Number(ddb.Seconds(now.Add(time.Hour)))
	past := ddb.Number(ddb.Seconds(now.Add(-time.Hour)))
	queue := func(with ddb.Item) ddb.Item {
		item := ddb.Item{"queue": ddb.Text("/door"), "next": ddb.Integer(7), "n": ddb.Integer(1), "left": ddb.Integer(5), "w_other": ddb.Integer(7), "b_other": end}
		maps.Copy(item, with)
		return item
	}
	empty := func(with ddb.Item) ddb.Item {
		item := ddb.Item{"queue": ddb.Text("/door"), "next": ddb.Integer(7), "n": ddb.Integer(0)}
		maps.Copy(item, with)
		return item
	}
	n := ddb.Number
	for _, c := range []struct {
		name   string
		item   ddb.Item
		unseen bool // only the answer shows it
	}{
		{"next, negative", empty(ddb.Item{"next": n("-5")}), false},
		{"next, huge", empty(ddb.Item{"next": n("1e100")}), false},
		{"next, below the limit of whole numbers", empty(ddb.Item{"next": n("9223372036854775806")}), false},
		{"next, a fraction", empty(ddb.Item{"next": n("1.5")}), true},
		{"next, text", empty(ddb.Item{"next": ddb.Text("7")}), false},
		{"next, no value", empty(ddb.Item{"next": &types.AttributeValueMemberNULL{Value: true}}), false},
		{"next, set back below the holder's", queue(ddb.Item{"next": n("3")}), true},
		{"next, set back below the last that left", empty(ddb.Item{"left": n("90")}), true},
		{"n, negative", empty(ddb.Item{"n": n("-1")}), false},
		{"n, huge", empty(ddb.Item{"n": n("1e100")}), false},
		{"n, a fraction", queue(ddb.Item{"n": n("0.5")}), true},
		{"n, text", empty(ddb.Item{"n": ddb.Text("0")}), false},
		{"left, negative", empty(ddb.Item{"left": n("-1")}), true},
		{"ticket, zero", queue(ddb.Item{"w_other": n("0")}), true},
		{"ticket, negative", queue(ddb.Item{"w_other": n("-1"), "b_other": past}), true},
		{"ticket, huge", queue(ddb.Item{"w_other": n("1e100"), "b_other": past}), true},
		{"ticket, a fraction", queue(ddb.Item{"w_other": n("0.5"), "b_other": past}), true},
		{"ticket, bytes", queue(ddb.Item{"w_other": ddb.Bytes([]byte{1}), "b_other": past}), true},
		{"two with one ticket", queue(ddb.Item{"w_twin": n("7"), "b_twin": past}), true},
		{"end, zero", queue(ddb.Item{"b_other": n("0")}), true},
		{"end, negative", queue(ddb.Item{"b_other": n("-1e100")}), true},
		{"end, huge", queue(ddb.Item{"b_other": n("1e100")}), true},
		{"end, none", queue(ddb.Item{"b_other": ddb.True()}), true},
		{"lease, zero", queue(ddb.Item{"l_other": n("0")}), true},
		{"lease, negative", queue(ddb.Item{"l_other": n("-30")}), true},
		{"lease, huge", queue(ddb.Item{"l_other": n("1e100")}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			for name, cfg := range map[string]ticket.Config{"trusting": {}, "clockless": {Clockless: true}} {
				q := b.queue(t, cfg)
				for call, ask := range map[string]func() error{
					"Lock":    func() error { _, err := q.Lock(t.Context(), "door"); return err },
					"TryLock": func() error { _, err := q.TryLock(t.Context(), "door"); return err },
					"Join":    func() error { _, err := q.Join(t.Context(), "door"); return err },
					"List":    func() error { _, err := q.List(t.Context(), "door"); return err },
				} {
					b.put(t, c.item)
					if err := ask(); !errors.Is(err, repo.ErrSchema) {
						// What only its answer would show TryLock need not see: somebody is there.
						if call != "List" && call != "TryLock" || call == "List" && !c.unseen || call == "TryLock" && !errors.Is(err, repo.ErrLocked) {
							t.Errorf("%s, %s: error %v", call, name, err)
						}
					}
					after := b.raw(t, "door")
					for name := range after {
						if c.item[name] == nil && (name[:2] == "w_" || name[:2] == "b_" || name[:2] == "l_") {
							t.Errorf("%s: %s stayed", call, name)
						}
					}
					if !c.unseen && !ddb.EqualItems(after, c.item) {
						t.Errorf("%s: the item was %v and is %v", call, c.item, after)
					}
				}
			}
		})
	}
}

// A holder goes on beside what somebody writes on its item: its own entry is
// there, and that is what its renewal is about.
func TestAHolderOutlivesForeignNumbers(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	turn := lock(t, q, "door")
	b.tamper(t, ddb.Item{"w_other": ddb.Integer(-1), "b_other": ddb.Integer(1), "n": ddb.Integer(-3)})
	rig.Is(t, turn.Extend(t.Context()))
	_, err := q.Lock(t.Context(), "door")
	rig.Is(t, err, repo.ErrSchema)
	rig.Is(t, context.Cause(turn.Context()))
	done(t, turn)
}

// Where the item cannot be read any more nothing tells whether a Done whose answer was lost
// has given the turn back.
func TestDoneWithoutAnAnswerOnAnItemThatCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		turn := lock(t, b.open(t, b.client, ticket.Config{Lease: time.Hour}), "door")
		first := true
		b.wire.obey(func(string, string) fate {
			if first {
				first = false
				return lost
			}
			b.wire.obey(nil)
			b.tamper(t, ddb.Item{"left": ddb.Text("5")})
			return delivered
		})
		rig.Is(t, turn.Done(t.Context()), repo.ErrOutcomeUnknown, repo.ErrSchema)
	})
}
