package protocol

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

func watching() *Core {
	return Of(stored.New(&stored.Table{Table: &ddb.Table{Name: "shelf"}, Attr: stored.Attributes{Writers: "writers", Tombstone: "tombstone"}}))
}

// ringOf is an item whose latest writes have these ids, newest first.
func ringOf(ids ...WriteID) ddb.Item {
	return ddb.Item{"writers": &types.AttributeValueMemberB{Value: bytesOf(ids...)}}
}

func bytesOf(ids ...WriteID) (ring []byte) {
	for _, id := range ids {
		ring = append(ring, id[:]...)
	}
	return ring
}

// someIDs are n ids, each of its own.
func someIDs(n int) (ids []WriteID) {
	for i := range n {
		ids = append(ids, WriteID{0: byte(i + 1), stored.RingID - 1: 1})
	}
	return ids
}

// What an image proves: the id proves the write, and what covers the ring that the
// write demands proves against it. Nothing else proves anything.
func TestTestimony(t *testing.T) {
	id := someIDs(12)
	mine, base := id[0], bytesOf(id[1], id[2])
	full := slices.Clone(id[4:12])
	for name, c := range map[string]struct {
		base, ring []byte
		want       Verdict
	}{
		"newest":                           {base, bytesOf(mine, id[1], id[2]), Committed},
		"under others":                     {base, bytesOf(id[3], id[4], mine, id[1]), Committed},
		"last in sight":                    {base, bytesOf(append(full[:7:7], mine)...), Committed},
		"without a base":                   {nil, bytesOf(id[3], mine), Committed},
		"as it was read":                   {base, base, Undecided},
		"others over what was read":        {base, bytesOf(id[3], id[1], id[2]), Lost},
		"what was read is last in sight":   {base, bytesOf(append(full[:7:7], id[1])...), Lost},
		"what was read is out of sight":    {base, bytesOf(full...), Undecided},
		"only what was before it is there": {base, bytesOf(id[3], id[2]), Lost},
		"nothing, and no base":             {nil, bytesOf(full...), Undecided},
		"no ring":                          {base, nil, Undecided},
	} {
		if got := Testimony(mine, c.base, c.ring); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Each write is told what is about it, and nothing else; a core does not see what
// another one sees, as processes do not.
func TestWhoseEvidenceItIs(t *testing.T) {
	core, other := watching(), watching()
	id := someIDs(9)
	mine, rival := core.Expect(id[0], nil, bytesOf(id[1])), core.Expect(id[2], nil, bytesOf(id[1]))
	elsewhere, blind := other.Expect(id[0], nil, bytesOf(id[1])), core.Expect(id[3], nil, nil)
	all := []*Evidence{mine, rival, elsewhere, blind}
	check := func(when string, want ...Verdict) {
		t.Helper()
		for i, e := range all {
			if got, _ := e.Verdict(); got != want[i] {
				t.Errorf("%s, write %d: %v, want %v", when, i, got, want[i])
			}
		}
	}
	core.Saw(ringOf(id[1]))
	core.Saw(ringOf(id[4], id[5]))
	core.Saw(nil)
	core.Saw(ddb.Item{"writers": ddb.Text("foreign")})
	foreign := ringOf(id[0], id[1])
	foreign["tombstone"] = ddb.Text("somebody else's")
	core.Saw(foreign)
	check("images that prove nothing", Undecided, Undecided, Undecided, Undecided)
	image := ringOf(id[0], id[1])
	core.Saw(image)
	check("an image that proves the first", Committed, Lost, Undecided, Undecided)
	core.Saw(ringOf(id[4], id[1])) // which no item can show after that: what was proved stays
	check("what speaks against it", Committed, Lost, Undecided, Undecided)
	core.Saw(ringOf(id[3]))
	check("an image that proves the blind one", Committed, Lost, Undecided, Committed)
	if _, got := mine.Verdict(); len(got) != 1 || !ddb.EqualItems(got, image) {
		t.Errorf("the image that told so is %v", got)
	}
	if core.Expected() != 3 || other.Expected() != 1 {
		t.Errorf("%d and %d writes are expected", core.Expected(), other.Expected())
	}
	for _, e := range all {
		e.End()
	}
	if n := core.Expected() + len(core.witness.writes) + other.Expected() + len(other.witness.writes); n != 0 {
		t.Errorf("%d are left", n)
	}
	late := core.Expect(id[6], nil, nil)
	late.End()
	core.Saw(ringOf(id[6]))
	if v, _ := late.Verdict(); v != Undecided {
		t.Errorf("after its end: %v", v)
	}
	var none *Evidence
	none.End()
	if v, _ := none.Verdict(); v != Undecided {
		t.Errorf("nobody's: %v", v)
	}
}

// An image costs nothing while no write is expected.
func TestNobodyIsExpected(t *testing.T) {
	core, image := watching(), ringOf(someIDs(8)...)
	if n := testing.AllocsPerRun(100, func() { core.Saw(image) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Writers of one process push ids on one ring, or do not, each on what it has read, which
// may be old, and is shown an image, which may be older: no testimony is wrong, and
// nothing is left in the end.
func TestWitnessesOfManyWriters(t *testing.T) {
	core := watching()
	var mu sync.Mutex
	var item []byte      // guarded by mu
	var history [][]byte // guarded by mu
	late := func(now []byte) []byte {
		if n := len(history); n > 0 && rand.IntN(2) == 0 {
			return history[max(0, n-1-rand.IntN(12))]
		}
		return now
	}
	var done sync.WaitGroup
	told := [3]int{} // guarded by mu
	for range 12 {
		done.Go(func() {
			for range 500 {
				id := NewWriteID()
				mu.Lock()
				base := late(item)
				mu.Unlock()
				e := core.Expect(id, nil, base)
				mu.Lock()
				applied := rand.IntN(2) == 0 && string(base) == string(item)
				if applied {
					item = id.Push(base).(*types.AttributeValueMemberB).Value
					history = append(history, item)
				}
				shown := late(item)
				mu.Unlock()
				core.Saw(ddb.Item{"writers": &types.AttributeValueMemberB{Value: shown}})
				v, _ := e.Verdict()
				mu.Lock()
				if v == Committed && !applied || v == Lost && applied {
					t.Errorf("applied: %v, testimony %v", applied, v)
				}
				switch v {
				case Committed:
					told[1]++
				case Lost:
					told[2]++
				default:
					told[0]++
				}
				mu.Unlock()
				e.End()
			}
		})
	}
	done.Wait()
	if slices.Contains(told[:], 0) {
		t.Errorf("not every testimony was given: %v", told)
	}
	if n := core.Expected() + len(core.witness.writes); n != 0 {
		t.Errorf("%d are left", n)
	}
}
