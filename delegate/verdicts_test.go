package delegate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

func one(t *testing.T) *program {
	t.Helper()
	p := open(t, rig.New(t))
	rig.Must(p.items.Create(t.Context(), product{Shop: "s", ID: "apple", Stock: 10}))(t)
	return p
}

func (p *program) stock(t *testing.T) int {
	t.Helper()
	return rig.Must(p.items.Get(t.Context(), apple))(t).Stock
}

func TestACommandRefusesByItsOwnError(t *testing.T) {
	p := one(t)
	l, err := p.take.Do(t.Context(), apple, take{3})
	if err != nil || l.Stock != 7 {
		t.Fatalf("%+v, %v", l, err)
	}
	_, err = p.take.Do(t.Context(), apple, take{8})
	var refused *delegate.RefusedError
	if !errors.As(err, &refused) || refused.Command != "take/v1" || refused.Text != "sold out" {
		t.Errorf("%#v", err)
	}
	rig.Is(t, err, errSoldOut)
	_, err = p.take.Do(t.Context(), repo.Key{Partition: "s", Sort: "pear"}, take{1})
	rig.Is(t, err, repo.ErrNotFound)
	if got := p.stock(t); got != 7 {
		t.Errorf("%d are left", got)
	}
}

// What a command does wrong is its caller's alone: the item stays, and its process goes on.
func TestWhatACommandDoesWrong(t *testing.T) {
	p := one(t)
	for name, c := range map[string]struct {
		run func(*product) (any, error)
		is  error
	}{
		"panics":           {func(*product) (any, error) { panic("secret") }, nil},
		"changes the key":  {func(p *product) (any, error) { p.ID = "pear"; return nil, nil }, repo.ErrFixed},
		"counts":           {func(p *product) (any, error) { p.Version++; return nil, nil }, repo.ErrFixed},
		"removes":          {func(*product) (any, error) { return nil, repo.Remove }, repo.ErrConfig},
		"result too large": {func(p *product) (any, error) { p.Stock = 0; return strings.Repeat("x", delegate.MostResult), nil }, repo.ErrTooLarge},
		"result is none":   {func(p *product) (any, error) { p.Stock = 0; return math.NaN(), nil }, repo.ErrSchema},
		"ends":             {func(*product) (any, error) { runtime.Goexit(); return nil, nil }, nil},
		"has no text":      {func(*product) (any, error) { var err *repo.NotUniqueError; return nil, err }, nil},
		"waits for itself": {func(*product) (any, error) { return p.take.Do(context.Background(), apple, take{1}) }, repo.ErrNested},
		"calls the item":   {func(*product) (any, error) { return nil, repo.ErrNested }, repo.ErrNested},
	} {
		t.Run(name, func(t *testing.T) {
			call := rig.Must(delegate.Command(p.all, name, func(_ context.Context, item *product, _ int) (any, error) { return c.run(item) }))(t)
			_, err := call.Do(t.Context(), apple, 0)
			var refused *delegate.RefusedError
			if !errors.As(err, &refused) || c.is != nil && !errors.Is(err, c.is) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
			if got := p.stock(t); got != 10 {
				t.Errorf("%d are left", got)
			}
		})
	}
}

// fragile ends the goroutine in which it is decoded.
type fragile struct{}

func (*fragile) UnmarshalDynamoDBAttributeValue(types.AttributeValue) error {
	runtime.Goexit()
	return nil
}

// A type that ended the goroutine in which it was decoded left all callers at its item without
// an answer, also those who came behind.
func TestAnItemThatEndsItsGoroutine(t *testing.T) {
	type breakable struct {
		Shop    string  `dynamodbav:"shop" repo:"pk"`
		ID      string  `dynamodbav:"id" repo:"sk"`
		Stock   fragile `dynamodbav:"stock"`
		Version int64   `dynamodbav:"version" repo:"version"`
	}
	b := rig.New(t)
	rig.Must(open(t, b).items.Create(t.Context(), product{Shop: "s", ID: "apple", Stock: 10}))(t)
	items := rig.Must(optimistic.New(rig.Must(repo.NewTable[breakable](b.Client, b.Table, repo.TableConfig{}))(t), optimistic.Config{}))(t)
	all := rig.Must(delegate.New(items, delegate.Config{}))(t)
	call := rig.Must(delegate.Command(all, "x", func(context.Context, *breakable, int) (int, error) { return 0, nil }))(t)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		_, err := call.Do(ctx, apple, 0)
		cancel()
		rig.Is(t, err, repo.ErrSchema)
	}
}

// quitter is a network that ends the goroutine of one request, as a test's does by FailNow.
type quitter struct {
	next fault.Doer
	left atomic.Int64 // requests until then
}

func (q *quitter) Do(req *http.Request) (*http.Response, error) {
	if q.left.Add(-1) == -1 {
		runtime.Goexit()
	}
	return q.next.Do(req)
}

// A client that ended the goroutine in which it was called did, too: with each request of a
// call alone, and of calls beside another leader.
func TestAClientThatEndsItsGoroutine(t *testing.T) {
	b, first := withList(t)
	net := &quitter{next: http.DefaultClient}
	net.left.Store(-1)
	ending := start(t, rig.Client(rig.Over(net)), b.Table)
	seen := newAudit()
	for n := range 24 {
		var all sync.WaitGroup
		for i, p := range []*process{first, ending, ending} {
			if n < 4 && i != 1 {
				continue // nobody else is there
			}
			if i == 1 {
				net.left.Store(int64(n))
			}
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
				defer cancel()
				op := fmt.Sprintf("%d.%d-", n, i)
				_, err := p.add.Do(ctx, key, op)
				if seen.record(op, err); ctx.Err() != nil {
					t.Errorf("request %d: call %d has waited: %v", n, i, err)
				}
			})
		}
		all.Wait()
	}
	seen.check(t, rig.Must(first.items.Get(t.Context(), key))(t).Ops)
}

// Whose context ends while another process has its command is told what became of it there.
func TestACallerLeavesWhileAnotherHasItsCommand(t *testing.T) {
	b, first := withList(t)
	over, stop := context.WithCancel(t.Context())
	var leads sync.WaitGroup
	leads.Go(func() {
		for over.Err() == nil {
			rig.Must(first.add.Do(t.Context(), key, "first-"))(t)
		}
	})
	defer leads.Wait()
	defer stop()
	peer, op := b.Peer(), ""
	ctx, leave := context.WithCancel(t.Context())
	var posted, looked atomic.Bool
	peer.Faults(func(_ string, _ int, body []byte) fault.Kind {
		switch {
		case bytes.Contains(body, []byte("mailItem")):
			posted.Store(true)
			return fault.None
		case !posted.Load() || ctx.Err() != nil:
			return fault.None
		case !looked.Swap(true):
			rig.Await(t, "another has carried it out", func() bool {
				return slices.Contains(rig.Must(first.items.Get(t.Context(), key))(t).Ops, op)
			})
			leave()
		}
		return fault.DropRequest
	})
	for n := 0; !looked.Load(); n++ { // until it does not lead itself
		op = fmt.Sprint("sender", n, "-")
		sender := start(t, peer.Client, b.Table)
		_, err := sender.add.Do(ctx, key, op)
		rig.Is(t, err)
		rig.Is(t, sender.all.Close(t.Context()))
	}
}

// A command that has called something else, and returns the error of that, has refused: that
// nobody knows what became of the other call says nothing of the item.
func TestACommandReturnsTheErrorOfAnotherCall(t *testing.T) {
	p := one(t)
	others := map[string]error{"unknown": repo.ErrOutcomeUnknown, "done": repo.ErrDone, "noResult": once.ErrNoResult}
	all := rig.Must(delegate.New(p.items, delegate.Config{Errors: others}))(t)
	call := rig.Must(delegate.Command(all, "calls/v1", func(_ context.Context, p *product, name string) (int, error) {
		p.Stock = 0
		return 0, fmt.Errorf("elsewhere: %w", others[name])
	}))(t)
	for name, other := range others {
		_, err := call.Do(t.Context(), apple, name)
		var refused *delegate.RefusedError
		if rig.Is(t, err, other); !errors.As(err, &refused) || repo.VerdictOf(err) != repo.NotWritten || p.stock(t) != 10 {
			t.Errorf("%v: %v, %d are left", err, repo.VerdictOf(err), p.stock(t))
		}
	}
}

func TestWhatIsRefusedBeforeAnythingIsSent(t *testing.T) {
	b := rig.New(t)
	p := open(t, b)
	b.Count.Reset()
	_, err := delegate.Command(p.all, "take/v1", takeFrom)
	rig.Is(t, err, repo.ErrConfig)
	_, err = delegate.Command(&delegate.Commands[product]{}, "take/v1", takeFrom)
	rig.Is(t, err, repo.ErrConfig)
	var none *optimistic.Repository[product]
	for _, items := range []delegate.Source[product]{nil, none, &optimistic.Repository[product]{}} {
		_, err = delegate.New(items, delegate.Config{})
		rig.Is(t, err, repo.ErrConfig)
	}
	for _, name := range []string{"", "\xff", "a\x00"} {
		_, err = delegate.Command(p.all, name, takeFrom)
		rig.Is(t, err, repo.ErrConfig)
	}
	say := rig.Must(delegate.Command(p.all, "say/v1", func(context.Context, *product, string) (int, error) { return 0, nil }))(t)
	_, err = say.Do(t.Context(), apple, strings.Repeat("x", delegate.MostArgs))
	rig.Is(t, err, repo.ErrTooLarge)
	for _, id := range []string{"", "\x80\x81"} { // by mail it would be that of each other id of two bytes that are no text
		_, err = p.take.Once(id).Do(t.Context(), apple, take{1})
		rig.Is(t, err, repo.ErrConfig)
	}
	_, err = delegate.Command(p.all, "loses", func(context.Context, *product, struct{ n int }) (int, error) { return 0, nil })
	rig.Is(t, err, repo.ErrSchema) // it would arrive as 0
	_, err = p.take.Do(t.Context(), repo.Key{Partition: 1}, take{1})
	rig.Is(t, err, repo.ErrKey)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.take.Do(over, apple, take{1})
	rig.Is(t, err, context.Canceled)
	if n := b.Count.Total(); n != 0 {
		t.Errorf("%d requests", n)
	}
	type plain struct {
		ID string `dynamodbav:"id" repo:"pk"`
		N  int    `dynamodbav:"n" repo:"version"`
	}
	table := rig.Must(repo.NewTable[plain](b.Client, "plain", repo.TableConfig{}))(t)
	locks := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	_, err = delegate.New(locks, delegate.Config{})
	rig.Is(t, err, repo.ErrConfig) // no sort key
	mail := rig.Must(delegate.NewMailTable(b.Client, "mail", repo.TableConfig{}))(t)
	rig.Must(delegate.New(locks, delegate.Config{Mail: mail}))(t)
	for _, name := range []string{"", "\xff", "a\x00b", "a\x01b"} { // the last ones would be two, or a text
		_, err = delegate.New(locks, delegate.Config{Mail: mail, Errors: map[string]error{name: errSoldOut}})
		rig.Is(t, err, repo.ErrConfig)
	}
}

func TestAnOperationIsAppliedOnce(t *testing.T) {
	p := one(t)
	if l, err := p.take.Once("m1").Do(t.Context(), apple, take{3}); err != nil || l.Stock != 7 {
		t.Fatalf("%+v, %v", l, err)
	}
	_, err := p.take.Once("m1").Do(t.Context(), apple, take{3})
	rig.Is(t, err, delegate.ErrRepeated)
	_, err = p.items.Once("m1").Update(t.Context(), apple, func(context.Context, *product) error {
		t.Error("the item has forgotten the id")
		return nil
	})
	rig.Is(t, err)
	if got := p.stock(t); got != 7 {
		t.Errorf("%d are left", got)
	}
}

func TestAloneACommandIsAReadAndAWrite(t *testing.T) {
	b := rig.New(t)
	p := open(t, b)
	rig.Must(p.items.Create(t.Context(), product{Shop: "s", ID: "apple", Stock: 10}))(t)
	b.Count.Reset()
	began := time.Now()
	rig.Must(p.take.Do(t.Context(), apple, take{1}))(t)
	looks := int(time.Since(began) / (20 * time.Millisecond)) // beside a write that is slow
	if all := b.Count.Counts(); b.Count.Total() > 2+looks || all["GetItem"] < 1 || all["UpdateItem"] != 1 {
		t.Errorf("%v, and %d looks at most", all, looks)
	}
	raw := b.Item(t, rig.Must(p.items.Table().EncodeKey(apple))(t))
	if raw["writersDelegated"] != nil {
		t.Error("who is alone has left evidence on the item")
	}
}

func TestClosedCommands(t *testing.T) {
	p := one(t)
	rig.Is(t, p.all.Close(t.Context()))
	_, err := p.take.Do(t.Context(), apple, take{1})
	rig.Is(t, err, repo.ErrConfig)
	rig.Is(t, p.all.Close(t.Context()))
}
