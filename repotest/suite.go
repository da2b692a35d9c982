package repotest

import (
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/repo"
)

// Suite says how to open the repository that is tested, and what its items are.
type Suite[T any] struct {
	// Open opens the repository as a process of the program does, with all that stands
	// around it. Each call is another process on the same table, which it makes if it is
	// not there.
	Open func(tb testing.TB, client *dynamodb.Client) repo.Repository[T]
	// New is an item that can be created. Another id is another key.
	New func(id string) T
	// Key is the primary key of an item.
	Key func(item T) repo.Key
	// Add makes an item's Count one more. Of events it moves the time on, too.
	Add func(item *T)
	// Count is what Add counts; another number than 0 for a new item does no harm.
	Count func(item T) int
	// Client is that of an engine. Default: localdb.Client, one engine for the Run.
	Client *dynamodb.Client
}

// Run checks, as subtests, that a repository keeps what [repo.Repository] promises: by its
// methods alone, against a real engine, with several processes, goroutines, faults, and
// contexts that end. It is for code of your own that stands around a strategy, such as one
// that caches, validates, translates errors or tries again, and for your choice of
// settings. It sends some thousand requests, and takes some seconds.
//
// A repository may refuse work (ErrLocked, ErrConflict), if its error says by errors.Is
// what [repo.VerdictOf] looks for. What it must not do: lose a change, apply one twice,
// say that something was written that was not, or the other way round.
func Run[T any](t *testing.T, s Suite[T]) {
	t.Helper()
	for name, missing := range map[string]bool{"Open": s.Open == nil, "New": s.New == nil, "Key": s.Key == nil, "Add": s.Add == nil, "Count": s.Count == nil} {
		if missing {
			t.Fatalf("repotest: Suite.%s is nil", name)
		}
	}
	item := s.New("x")
	before := s.Count(item)
	if s.Add(&item); s.Count(item) != before+1 {
		t.Fatalf("repotest: Suite.Add must make Count one more: it was %d, and is %d", before, s.Count(item))
	}
	if same(s.Key(item), s.Key(s.New("y"))) {
		t.Fatalf("repotest: Suite.New must give another id another key: %v is that of two", s.Key(item))
	}
	if s.Client == nil {
		s.Client = localdb.Client(t)
	}
	s.Open(t, s.Client) // the table is there from now on: its making counts in no test
	for name, run := range map[string]func(*check[T]){
		"items come and go":                  (*check[T]).itemsComeAndGo,
		"a change that fails writes nothing": (*check[T]).failingChanges,
		"bad input is refused":               (*check[T]).badInput,
		"a change inside itself is refused":  (*check[T]).nestedChanges,
		"one of many creates wins":           (*check[T]).oneCreateWins,
		"no change is lost":                  (*check[T]).noChangeIsLost,
		"a read is of now":                   (*check[T]).readsAreOfNow,
		"a change in the middle of another":  (*check[T]).changeInTheMiddle,
		"a context that has ended":           (*check[T]).endedContext,
		"a context that ends on the way":     (*check[T]).endingContexts,
		"verdicts under faults":              (*check[T]).verdictsUnderFaults,
		"verdicts under outages":             (*check[T]).verdictsUnderOutages,
	} {
		t.Run(name, func(t *testing.T) {
			run(&check[T]{t, s, s.Open(t, s.Client)})
		})
	}
}

// same reports whether two keys are one. Those that are binary have no ==.
func same(a, b repo.Key) bool { return reflect.DeepEqual(a, b) }

// patience bounds a call: less than the usual lease, so that a lock which was left
// behind is found.
const patience = 20 * time.Second

// attempts are those of the clients that break: an outage need not be long.
const attempts = 3

// check is one subtest.
type check[T any] struct {
	*testing.T
	Suite[T]
	plain repo.Repository[T] // of a process whose network is well
}

// process is another process, whose requests can be broken.
func (c *check[T]) process() (repo.Repository[T], *Faults) {
	c.Helper()
	f := newFaults(c.T, c.Client, attempts)
	f.lenient = true
	r := c.Open(c.T, f.Client())
	f.Reset()
	return r, f
}

// soon is a context for one call.
func (c *check[T]) soon() context.Context { return c.within(patience) }

func (c *check[T]) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(c.Context(), d)
	c.Cleanup(cancel)
	return ctx
}

// fresh is an item that is not stored.
func (c *check[T]) fresh() (T, repo.Key) {
	item := c.New(rand.Text())
	return item, c.Key(item)
}

// stored is an item that is.
func (c *check[T]) stored() (T, repo.Key) {
	c.Helper()
	item, key := c.fresh()
	item, err := c.plain.Create(c.soon(), item)
	if err != nil {
		c.Fatalf("Create: %v", err)
	}
	return item, key
}

func (c *check[T]) add(_ context.Context, item *T) error { c.Add(item); return nil }

// is checks the error of a call.
func (c *check[T]) is(call string, err, want error) {
	c.Helper()
	if !errors.Is(err, want) {
		c.Errorf("%s: error %v, want %v by errors.Is", call, err, want)
	}
}

// counts is what is stored of an item.
func (c *check[T]) counts(key repo.Key) int {
	c.Helper()
	item, err := c.plain.Get(c.soon(), key)
	if err != nil {
		c.Errorf("Get: %v", err)
	}
	return c.Count(item)
}

// goesOn checks that nothing was left behind that keeps others out.
func (c *check[T]) goesOn(key repo.Key) {
	c.Helper()
	before := c.counts(key)
	if _, err := c.plain.Update(c.soon(), key, c.add); err != nil {
		c.Errorf("the next change of the item: %v", err)
	} else if now := c.counts(key); now != before+1 {
		c.Errorf("the next change has made %d of %d", now, before)
	}
}
