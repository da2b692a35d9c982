package once_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
	"github.com/dynahold/dynahold/txn"
)

// What the item is in, seen from the clock of who comes next: programs disagree
// about the epoch at its edge.
func TestTheEpochsOfAnItem(t *testing.T) {
	sets := func(epoch int64, present, past string) map[string]types.AttributeValue {
		values := map[string]types.AttributeValue{"once": set(id(present)), "onceEpoch": number(epoch)}
		if past != "" {
			values["oncePast"] = set(id(past))
		}
		return values
	}
	each(t, func(t *testing.T, s *store) {
		for what, c := range map[string]struct {
			stored        map[string]types.AttributeValue
			known, lost   []string // after a message has come
			epoch         int64
			present, past int
		}{
			"nothing yet":          {nil, nil, []string{"a", "b"}, now(), 1, 0},
			"the present epoch":    {sets(now(), "a", "b"), []string{"a", "b"}, nil, now(), 2, 1},
			"the one before":       {sets(now()-1, "a", "b"), []string{"a"}, []string{"b"}, now(), 1, 1},
			"long ago":             {sets(now()-99, "a", "b"), []string{"a"}, []string{"b"}, now(), 1, 1},
			"a clock that is fast": {sets(now()+1, "a", "b"), []string{"a", "b"}, nil, now() + 1, 2, 1},
			"one that is wrong":    {sets(now()+999, "a", ""), []string{"a"}, []string{"b"}, now() + 999, 2, 0},
		} {
			for call, do := range taking {
				s.set(t, "REMOVE once, oncePast, onceEpoch SET stock = :ten", map[string]types.AttributeValue{":ten": number(10)})
				for name, v := range c.stored {
					s.set(t, "SET "+name+" = :v", map[string]types.AttributeValue{":v": v})
				}
				// What warm items believe is refused by the ring: others have written.
				rig.Must(rig.Must(pessimistic.New(s.table, pessimistic.Config{}))(t).Update(t.Context(), key, func(_ context.Context, p *product) error { p.Stock = 20; return nil }))(t)
				if got := rig.Must(do(t.Context(), s.once("m")))(t); got.Stock != 19 {
					t.Errorf("%s, %s: %+v", what, call, got)
				}
				raw := s.raw(t)
				present, _ := raw["once"].(*types.AttributeValueMemberBS)
				past, _ := raw["oncePast"].(*types.AttributeValueMemberBS)
				if past == nil {
					past = &types.AttributeValueMemberBS{}
				}
				if len(present.Value) != c.present || len(past.Value) != c.past || raw["onceEpoch"].(*types.AttributeValueMemberN).Value != number(c.epoch).(*types.AttributeValueMemberN).Value {
					t.Errorf("%s, %s: %d present, %d past, epoch %v", what, call, len(present.Value), len(past.Value), raw["onceEpoch"])
				}
				want := 19
				for _, known := range append(c.known, "m") {
					rig.Must(do(t.Context(), s.once(known)))(t)
				}
				rig.Equal(t, s.stock(t), want, "%s, %s: an id was forgotten: stock", what, call)
				for _, lost := range c.lost {
					want--
					rig.Must(do(t.Context(), s.once(lost)))(t)
				}
				rig.Equal(t, s.stock(t), want, "%s, %s: stock", what, call)
			}
		}
	})
}

// A deployment gives the programs another Remember, longer or shorter. What was made before it
// is not made again, on the item or in a row beside it, and goes when its time is over.
func TestADeploymentWithAnotherRemember(t *testing.T) {
	for _, name := range []string{"optimistic", "pessimistic"} {
		for _, span := range [][2]time.Duration{{time.Hour, 24 * time.Hour}, {24 * time.Hour, time.Hour}} {
			for _, n := range []int{5, 140} {
				for call, do := range taking {
					t.Run(fmt.Sprint(name, span, n, call), func(t *testing.T) {
						t.Parallel()
						var clock repotest.Clock
						clock.Set(time.Date(2026, 11, 29, 23, 50, 0, 0, time.UTC))
						s := &store{Rig: rig.New(t)}
						deploy := func(remember time.Duration) {
							s.table = rig.Must(repo.NewTable[product](s.Client, s.Table, repo.TableConfig{Remember: remember, Clock: clock.Now}))(t)
							s.once, s.plain = strategies[name](t, s.table, lease)
						}
						all := func(begin string, want int) {
							t.Helper()
							for i := range n {
								rig.Must(do(t.Context(), s.once(fmt.Sprint(begin, i))))(t)
							}
							rig.Equal(t, s.stock(t), want, "stock, behind %q", begin)
						}
						deploy(span[0])
						rig.Is(t, s.table.EnsureTable(t.Context()))
						rig.Must(s.plain.Create(t.Context(), product{SKU: "apple", Stock: 5 * n}))(t)
						all("a", 4*n)
						clock.Advance(15 * time.Minute) // the day ends: what came is the past
						rig.Must(do(t.Context(), s.once("a0")))(t)
						all("b", 3*n)
						deploy(span[1])
						rig.Must(do(t.Context(), s.once("c")))(t)
						all("a", 3*n-1)
						clock.Advance(span[1] * 999 / 1000) // another epoch
						rig.Must(do(t.Context(), s.once("c2")))(t)
						all("b", 3*n-2)
						for i := range 3 { // each id goes in the third epoch at the latest
							clock.Advance(span[1])
							rig.Must(do(t.Context(), s.once(fmt.Sprint("d", i))))(t)
						}
						if raw := s.raw(t); entries(raw) > 2 {
							t.Errorf("%d ids stay, %v", entries(raw), raw["onceEpoch"])
						}
					})
				}
			}
		}
	}
}

// The first Apply of an epoch finds the item in the one before: one request more.
func TestWhatTheFirstApplyOfAnEpochCosts(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for _, c := range []struct {
			epoch int64
			want  int
		}{{now() - 1, 2}, {now(), 1}, {now() + 5, 2}} {
			s.set(t, "SET once = :a, onceEpoch = :e REMOVE oncePast", map[string]types.AttributeValue{":a": set(id("a")), ":e": number(c.epoch)})
			s.Count.Reset()
			rig.Must(taking["Apply"](t.Context(), s.once("m")))(t)
			rig.Equal(t, s.Count.Total(), c.want, "epoch %d: requests", c.epoch-now())
		}
	})
}

// An Apply whose own condition does not hold is told so whatever ids the item has: where
// others, of another Remember, had counted them, or where they had gone to rows, it was sent
// again and again.
func TestAConditionWhateverTheIDs(t *testing.T) {
	var many [][]byte
	for i := range 192 {
		many = append(many, id(fmt.Sprint(i)))
	}
	each(t, func(t *testing.T, s *store) {
		for _, c := range []struct {
			ids   [][]byte
			epoch int64
		}{{many[:1], now() - 1}, {many[:1], now()}, {many[:1], now() / 24}, {many[:1], now() * 24}, {many, now()}} {
			for _, past := range []types.AttributeValue{nil, set(id("past"))} {
				s.set(t, "SET stock = :zero, once = :a, onceEpoch = :e REMOVE oncePast", map[string]types.AttributeValue{":zero": number(0), ":a": set(c.ids...), ":e": number(c.epoch)})
				if past != nil {
					s.set(t, "SET oncePast = :p", map[string]types.AttributeValue{":p": past})
				}
				ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
				_, err := taking["Apply"](ctx, s.once("m"))
				cancel()
				rig.Is(t, err, repo.ErrCondition)
			}
		}
	})
}

// An item that is full of what can go nowhere, which are no operations' ids, refuses new
// ids, and forgets none.
func TestTheLimitOfIDs(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		full := make([][]byte, 4096)
		for i := range full {
			full[i] = binary.BigEndian.AppendUint32(make([]byte, 8), uint32(i))
		}
		s.set(t, "SET once = :a, oncePast = :p, onceEpoch = :e", map[string]types.AttributeValue{":a": set(full...), ":p": set(id("known")), ":e": number(now() + 1)})
		for name, do := range taking {
			_, err := do(t.Context(), s.once("new"))
			rig.Is(t, err, repo.ErrTooLarge)
			rig.Is(t, s.inside(t, func(ctx context.Context, tx *txn.Tx) error {
				v := s.once("new")
				_, err := do(ctx, inTx{v, inside(v, tx)})
				return err
			}), repo.ErrTooLarge)
			v := s.once("known")
			if rig.Must(do(t.Context(), v))(t); !v.Repeated() {
				t.Errorf("%s has forgotten an id", name)
			}
		}
		if s.stock(t) != 10 || s.raw(t)["lockedBy"] != nil {
			t.Error("something was written")
		}
		// An epoch later there is room.
		s.set(t, "SET onceEpoch = :e", map[string]types.AttributeValue{":e": number(now() - 1)})
		for _, do := range taking {
			rig.Must(do(t.Context(), s.once("new")))(t)
		}
		rig.Equal(t, s.stock(t), 9, "stock")
	})
}

// What stands under the names and is not the library's is neither believed nor
// overwritten.
func TestForeignAttributesUnderTheNamesOfIDs(t *testing.T) {
	ours := map[string]types.AttributeValue{"once": set(id("a")), "oncePast": set(id("b")), "onceEpoch": number(now())}
	foreign := []map[string]types.AttributeValue{
		{"once": set(id("a"))}, {"oncePast": set(id("a"))}, {"onceEpoch": number(now())}, {"oncePast": set(id("a")), "onceEpoch": number(7)},
	}
	for name := range ours {
		for _, v := range []types.AttributeValue{&types.AttributeValueMemberS{Value: "yes"}, &types.AttributeValueMemberBOOL{Value: true}, number(-1), set([]byte{1}), set(id("a"), []byte("longer than an id is")), &types.AttributeValueMemberSS{Value: []string{"a"}}} {
			item := map[string]types.AttributeValue{name: v}
			for other, right := range ours {
				if other != name {
					item[other] = right
				}
			}
			foreign = append(foreign, item)
		}
	}
	each(t, func(t *testing.T, s *store) {
		for _, attributes := range foreign {
			s.set(t, "REMOVE once, oncePast, onceEpoch", nil)
			for name, v := range attributes {
				s.set(t, "SET "+name+" = :v", map[string]types.AttributeValue{":v": v})
			}
			for name, do := range taking {
				if set, ok := attributes["once"].(*types.AttributeValueMemberBS); name == "Apply" && ok && attributes["onceEpoch"] != nil && attributes["oncePast"] != nil {
					if len(set.Value[0]) != 12 || len(set.Value) > 1 {
						continue // how long the ids are no condition can ask
					}
				}
				if set, ok := attributes["oncePast"].(*types.AttributeValueMemberBS); name == "Apply" && ok && attributes["once"] != nil && (len(set.Value) > 1 || len(set.Value[0]) != 12) {
					continue
				}
				if _, err := do(t.Context(), s.once("m")); !errors.Is(err, repo.ErrSchema) {
					t.Errorf("%v: %s: %v", attributes, name, err)
				}
			}
			_, err := s.once("m").Create(t.Context(), product{SKU: "apple"})
			rig.Is(t, err, repo.ErrSchema)
			_, err = s.table.Get(t.Context(), key)
			rig.Is(t, err, repo.ErrSchema)
			if n := s.raw(t)["stock"].(*types.AttributeValueMemberN).Value; n != "10" {
				t.Fatalf("%v: something was written", attributes)
			}
		}
	})
}

// The names are the library's: a type cannot map them, an expression cannot change
// them, and they can be others.
func TestTheNamesOfTheIDs(t *testing.T) {
	b := rig.New(t)
	type taken struct {
		SKU  string `dynamodbav:"sku" repo:"pk"`
		Once int    `dynamodbav:"oncePast"`
	}
	_, err := repo.NewTable[taken](b.Client, b.Table, repo.TableConfig{})
	rig.Is(t, err, repo.ErrSchema)
	_, err = repo.NewTable[taken](b.Client, b.Table, repo.TableConfig{Attributes: repo.Attributes{Once: "ids"}})
	rig.Is(t, err)
	_, err = repo.NewTable[product](b.Client, b.Table, repo.TableConfig{Attributes: repo.Attributes{Once: "w", Writers: "wPast"}})
	rig.Is(t, err, repo.ErrConfig)
	_, err = repo.NewTable[product](b.Client, b.Table, repo.TableConfig{Remember: 1})
	rig.Is(t, err, repo.ErrConfig)
}

type event struct {
	SKU     string `dynamodbav:"sku" repo:"pk"`
	Stock   int    `dynamodbav:"stock"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// An item that was deleted by an event remembers what was made before: a message
// that comes again does not bring it back.
func TestATombstoneRemembers(t *testing.T) {
	b := rig.New(t)
	table := rig.Must(repo.NewTable[event](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	events := rig.Must(nolock.New(table, nolock.Config{}))(t)
	r := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	make := func(_ context.Context, e *event) error { e.At, e.Stock = 20, 1; return nil }
	rig.Must(r.Once("m").Create(t.Context(), event{SKU: "apple", At: 1}))(t)
	rig.Is(t, events.DeleteAt(t.Context(), key, 2))
	for name, do := range map[string]func(*pessimistic.Once[event]) error{
		"Upsert": func(o *pessimistic.Once[event]) error { _, err := o.Upsert(t.Context(), key, make); return err },
		"Create": func(o *pessimistic.Once[event]) error {
			_, err := o.Create(t.Context(), event{SKU: "apple", At: 20})
			return err
		},
	} {
		o := r.Once("m")
		if err := do(o); !errors.Is(err, repo.ErrNotFound) || !o.Repeated() {
			t.Errorf("%s: %v, repeated %v", name, err, o.Repeated())
		}
	}
	rig.Must(r.Once("n").Upsert(t.Context(), key, make))(t)
	o := r.Once("m") // remembered beside it
	if got := rig.Must(o.Update(t.Context(), key, make))(t); got.Stock != 1 || !o.Repeated() {
		t.Errorf("%+v, repeated %v", got, o.Repeated())
	}
}

// What a tombstone remembers counts in the size of the item that takes its place: one
// that could not be locked any more is refused.
func TestTheIDsOfATombstoneCount(t *testing.T) {
	type large struct {
		SKU  string `dynamodbav:"sku" repo:"pk"`
		Text string `dynamodbav:"text,omitempty"`
		At   int64  `dynamodbav:"at" repo:"eventtime"`
	}
	s := &store{Rig: rig.New(t)}
	table := rig.Must(repo.NewTable[large](s.Client, s.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	r := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	ids := make([][]byte, 4096)
	for i := range ids {
		ids[i] = binary.BigEndian.AppendUint32(make([]byte, 8), uint32(i))
	}
	s.set(t, "SET tombstone = :t, once = :a, onceEpoch = :e", map[string]types.AttributeValue{":t": &types.AttributeValueMemberBOOL{Value: true}, ":a": set(ids...), ":e": number(now())})
	const fits = 409_600 - 1024 - 4096*12 - 100
	_, err := r.Create(t.Context(), large{SKU: "apple", At: 2, Text: strings.Repeat("x", fits+200)})
	rig.Is(t, err, repo.ErrTooLarge)
	rig.Must(r.Create(t.Context(), large{SKU: "apple", At: 2, Text: strings.Repeat("x", fits)}))(t)
	held := rig.Must(r.Acquire(t.Context(), key))(t)
	rig.Is(t, held.Release(t.Context()))
}

// A program whose clock is another moves the item on while an Apply is under way: what
// the Apply then writes forgets nothing, and does not move it back.
func TestTheEpochMovesOnBeneathAnApply(t *testing.T) {
	for _, strategy := range []string{"optimistic", "pessimistic"} {
		for _, c := range []struct {
			name      string
			stored    int64 // the item's epoch at first, from now
			at        int   // the request before which it moves on
			epoch     int64 // to which, from now
			known     []string
			requests  int
			lastEpoch int64
		}{
			{"nothing yet", -9, 1, 0, []string{"b", "c"}, 1, 0},
			{"nothing yet, and a clock that is fast", -9, 1, 1, []string{"b", "c"}, 2, 1},
			{"the present one", 0, 1, 1, []string{"b", "c"}, 2, 1},
			{"the one before, as the call does", -1, 2, 0, []string{"b", "c"}, 3, 0},
			{"the one before, further than the call does", -1, 2, 1, []string{"b", "c"}, 3, 1},
		} {
			t.Run(strategy+", "+c.name, func(t *testing.T) {
				t.Parallel()
				s := &store{Rig: rig.New(t)}
				client := &rig.Intercept{Client: s.Client}
				s.table = rig.Must(repo.NewTable[product](client, s.Table, repo.TableConfig{}))(t)
				rig.Is(t, s.table.EnsureTable(t.Context()))
				s.once, s.plain = strategies[strategy](t, s.table, lease)
				rig.Must(s.plain.Create(t.Context(), product{SKU: "apple", Stock: 10}))(t)
				move := func(to int64, present, past string) {
					s.set(t, "SET once = :a, oncePast = :b, onceEpoch = :e", map[string]types.AttributeValue{":a": set(id(present)), ":b": set(id(past)), ":e": number(to)})
				}
				if c.stored > -9 {
					move(now()+c.stored, "a", "z")
				}
				sent := 0
				client.Update = func(_ int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
					if sent++; sent == c.at {
						move(now()+c.epoch, "b", "c")
					}
					return send()
				}
				rig.Must(taking["Apply"](t.Context(), s.once("m")))(t)
				rig.Equal(t, sent, c.requests, "requests")
				if got := s.raw(t)["onceEpoch"].(*types.AttributeValueMemberN).Value; got != strconv.FormatInt(now()+c.lastEpoch, 10) {
					t.Errorf("epoch %s, want %d", got, now()+c.lastEpoch)
				}
				for _, known := range append(c.known, "m") {
					rig.Must(taking["Update"](t.Context(), s.once(known)))(t)
				}
				rig.Equal(t, s.stock(t), 9, "stock : an id was forgotten")
			})
		}
	}
}
