package delegated_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// list is an item that tells which operations were applied, and how often.
type list struct {
	Shop    string   `dynamodbav:"shop" repo:"pk"`
	ID      string   `dynamodbav:"id" repo:"sk"`
	Ops     []string `dynamodbav:"ops"`
	Others  int      `dynamodbav:"others"`
	Event   int64    `dynamodbav:"event" repo:"eventtime"`
	Version int64    `dynamodbav:"version" repo:"version"`
}

var errOdd = errors.New("odd")

func refuses(op string) bool { return op[len(op)-1] == '!' }

// program is what one process has of the table.
type program struct {
	*process
	name     string
	items    *optimistic.Repository[list]
	locks    *pessimistic.Repository[list]
	holds    *lockedread.Locker[list]
	events   *nolock.Repository[list]
	commands *delegate.Commands[list]
	add      *delegate.Call[string, string]
}

// setup is how a process is made.
type setup struct {
	attempts int              // of the SDK
	clock    func() time.Time // nil: the right one
	command  string           // the name under which it knows the command; "": add/v1
	wide     bool             // results are long
}

// world is a run on one item.
type world struct {
	*network
	t     *testing.T
	next  fault.Doer
	table string
	key   repo.Key

	mu   sync.Mutex
	told map[string]told // guarded by mu: by operation
	gone []string        // guarded by mu: operations of the item before it was deleted
}

// told is what a caller was told, and who.
type told struct {
	by     *program
	result string
	err    error
	took   time.Duration
}

func (w *world) program(name string, s setup) *program {
	p := &program{process: w.process(w.next), name: name}
	client := rig.Client(rig.Over(p.process), attempts(s.attempts))
	cfg := repo.TableConfig{Clock: s.clock}
	table := rig.Must(repo.NewTable[list](client, w.table, cfg))(w.t)
	p.items = rig.Must(optimistic.New(table, optimistic.Config{}))(w.t)
	p.locks = rig.Must(pessimistic.New(table, pessimistic.Config{Lease: 2 * time.Second}))(w.t)
	p.holds = rig.Must(lockedread.New(table, lockedread.Config{Lease: 2 * time.Second}))(w.t)
	p.events = rig.Must(nolock.New(table, nolock.Config{}))(w.t)
	p.commands = rig.Must(delegate.New(p.items, delegate.Config{Errors: map[string]error{"odd": errOdd}}))(w.t)
	p.add = rig.Must(delegate.Command(p.commands, cmp.Or(s.command, "add/v1"), func(_ context.Context, l *list, op string) (string, error) {
		if refuses(op) {
			return "", errOdd
		}
		l.Ops = append(l.Ops, op)
		if s.wide {
			return op + strings.Repeat(".", 400), nil
		}
		return op, nil
	}))(w.t)
	return p
}

// call has an operation applied, and notes what its caller is told.
func (w *world) call(ctx context.Context, p *program, op string) {
	began := time.Now()
	result, err := p.add.Do(ctx, w.key, op)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told[op] = told{p, result, err, time.Since(began)}
}

// operations are those that the item has, and had before it was deleted.
func (w *world) operations() (ops []string) {
	w.mu.Lock()
	ops = append(ops, w.gone...)
	w.mu.Unlock()
	table := rig.Must(repo.NewTable[list](rig.Client(rig.Over(w.next)), w.table, repo.TableConfig{}))(w.t)
	switch got, err := table.Get(context.Background(), w.key); {
	case err == nil:
		ops = append(ops, got.Ops...)
	case !errors.Is(err, repo.ErrNotFound):
		w.t.Error(err)
	}
	return ops
}

// sum is how many callers were told what.
type sum struct {
	cells, empty, requests         int
	applied, refused, not, unknown int
	unknownApplied                 int // of the unknown
}

func (s *sum) add(o sum) {
	s.cells, s.empty, s.requests, s.applied, s.refused = s.cells+o.cells, s.empty+o.empty, s.requests+o.requests, s.applied+o.applied, s.refused+o.refused
	s.not, s.unknown, s.unknownApplied = s.not+o.not, s.unknown+o.unknown, s.unknownApplied+o.unknownApplied
}

func (s sum) String() string {
	return fmt.Sprintf("%d requests, %d faults in %d runs, %d verdicts: %d applied, %d refused, %d not applied, %d unknown, of which %d were applied",
		s.requests, s.cells-s.empty, s.cells, s.applied+s.refused+s.not+s.unknown, s.applied, s.refused, s.not, s.unknown, s.unknownApplied)
}

// judge compares what callers were told with what the item says. may says what else than
// the command's own verdict a caller may be told.
func (w *world) judge(ops []string, may func(told) bool) (s sum) {
	times := map[string]int{}
	for _, op := range ops {
		times[op]++
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for op, what := range w.told {
		n := times[op]
		delete(times, op)
		says := verdictOf(what.err)
		wrong := n > 1
		switch says {
		case "applied":
			s.applied++
			wrong = wrong || n != 1 || strings.TrimRight(what.result, ".") != op
		case "refused":
			s.refused++
			wrong = wrong || n != 0 || !errors.Is(what.err, errOdd)
		case "unknown":
			s.unknown++
			s.unknownApplied += n
		default:
			s.not++
			wrong = wrong || n != 0
		}
		if wrong {
			w.t.Errorf("%s was told %q (%v), and is there %d times", op, says, what.err, n)
		}
		if want := promised(op); says != want && !may(what) {
			w.t.Errorf("%s was told %q (%v) after %v, promised is %q", op, says, what.err, what.took, want)
		}
	}
	for op, n := range times {
		w.t.Errorf("nobody was told of %s, which is there %d times", op, n)
	}
	return s
}

// promised is what an operation's caller is to be told.
func promised(op string) string {
	if refuses(op) {
		return "refused"
	}
	return "applied"
}

func verdictOf(err error) string {
	var refused *delegate.RefusedError
	switch {
	case err == nil:
		return "applied"
	case errors.As(err, &refused):
		return "refused"
	case errors.Is(err, repo.ErrOutcomeUnknown):
		return "unknown"
	}
	return "not applied"
}
