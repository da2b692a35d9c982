package history

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// simulation is a few clients and an item in memory, advanced one step at a
// time: begin, see the item, write it, return.
type simulation struct {
	rng     *rand.Rand
	rec     *Recorder
	item    State
	clients []client
	late    []func() // unknown writes on their way
	unknown float64  // share of unknown outcomes
	// careless is the share of the writes that do not care who wrote in
	// between: 0 is a correct item.
	careless float64
	values   int64 // how many numbers there are; 0: each is new
	written  int64
}

type client struct {
	done func(Result)
	kind Kind
	seen *State
	res  *Result
}

func (s *simulation) value() State {
	if s.values > 0 {
		return Present(s.rng.Int64N(s.values))
	}
	s.written++
	return Present(s.written)
}

// step advances a client; false if it stands before its next operation.
func (s *simulation) step(i int) bool {
	c := &s.clients[i]
	switch {
	case c.done == nil:
		c.kind = Kind(s.rng.IntN(5))
		if s.values == 0 && s.rng.IntN(3) > 0 {
			c.kind = Update // as in real tests: most operations
		}
		c.done = s.rec.Begin(i, c.kind)
	case c.seen == nil:
		now := s.item
		c.seen = &now
	case c.res == nil:
		c.res = s.act(c.kind, *c.seen)
	default:
		c.done(*c.res)
		*c = client{}
		return false
	}
	return true
}

// act is a conditional write based on what was seen.
func (s *simulation) act(k Kind, seen State) *Result {
	res := &Result{Verdict: OK, Old: seen}
	switch k {
	case Get:
		if !seen.Exists {
			res.Verdict = NotFound
		}
		return res
	case Create:
		res.Old, res.New = State{}, s.value()
		if seen.Exists {
			res.Verdict = Exists
			return res
		}
	case Update, Delete:
		if !seen.Exists {
			res.Verdict = NotFound
			return res
		}
		if k == Update {
			res.New = s.value()
		}
	case Upsert:
		res.New = s.value()
	}
	write := func() bool {
		if s.item != seen && s.rng.Float64() >= s.careless {
			return false
		}
		s.item = res.New
		return true
	}
	if s.rng.Float64() < s.unknown {
		res.Verdict = Unknown
		if s.rng.IntN(3) > 0 {
			s.late = append(s.late, func() { write() })
		}
		return res
	}
	if !write() {
		res.Verdict = Refused
	}
	return res
}

func (s *simulation) run(operations int) {
	for begun := 0; begun < operations; {
		if n := len(s.late); n > 0 && s.rng.IntN(4) == 0 {
			i := s.rng.IntN(n)
			s.late[i]()
			s.late = append(s.late[:i], s.late[i+1:]...)
			continue
		}
		if i := s.rng.IntN(len(s.clients)); !s.step(i) {
			begun++
		}
	}
	for i := range s.clients {
		for s.clients[i].done != nil {
			s.step(i)
		}
	}
}

func newSimulation(seed uint64, clients int) *simulation {
	return &simulation{rng: rand.New(rand.NewPCG(seed, 7)), rec: NewRecorder(), clients: make([]client, clients)} // repeatable on purpose
}

// nondeterministic is the model as one would write it down without regard to
// the search: an unknown operation has its effect or none.
var nondeterministic = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{State{}} },
	Step: func(before, input, output any) []any {
		s, k, r := before.(State), input.(Kind), output.(Result)
		next, ok := effect(s, k, r)
		switch {
		case ok && r.Verdict == Unknown:
			return []any{s, next}
		case ok:
			return []any{next}
		case r.Verdict == Unknown:
			return []any{s}
		}
		return nil
	},
}).ToModel()

// The two models accept the same histories, of correct items and of broken ones.
func TestModelAgreesWithTheNondeterministicOne(t *testing.T) {
	fine := map[bool]int{}
	for seed := range uint64(6000) {
		s := newSimulation(seed, 3)
		s.unknown, s.values = 0.3, 3
		if seed%2 == 1 {
			s.careless = 1
		}
		s.run(14)
		var plain []porcupine.Operation
		ops, _ := s.rec.operations()
		for _, op := range ops {
			if op.Output.(Result).Verdict == Unknown {
				op.Return = math.MaxInt64
			}
			if op.Input != end {
				plain = append(plain, op)
			}
		}
		want := porcupine.CheckOperations(nondeterministic, plain)
		got := s.rec.Check(0)
		if (got == nil) != want {
			t.Errorf("seed %d: nondeterministic %v, ours: %v", seed, want, got)
		}
		if s.careless == 0 && got != nil {
			t.Errorf("seed %d: the item is correct: %v", seed, got)
		}
		fine[want]++
	}
	if fine[true] < 500 || fine[false] < 500 {
		t.Errorf("too few of a kind: %v", fine)
	}
	t.Logf("%d linearizable, %d not", fine[true], fine[false])
}

// Histories of the size that tests of the library make are decided quickly,
// whichever way.
func TestLongHistoriesAreDecided(t *testing.T) {
	for _, careless := range []float64{0, 0.05} {
		rejected := 0
		for seed := range uint64(20) {
			s := newSimulation(seed, 10)
			s.unknown, s.careless = 0.1, careless
			s.run(500)
			err := s.rec.Check(time.Minute)
			var violation *Violation
			if errors.As(err, &violation) {
				rejected++
			} else if err != nil {
				t.Error(err)
			}
		}
		if careless == 0 && rejected > 0 || careless > 0 && rejected < 15 {
			t.Errorf("careless %v: %d of 20 rejected", careless, rejected)
		}
	}
}
