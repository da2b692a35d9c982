package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/examples/recipes"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/repo"
)

// shop is a shop with two customers and seats.
func shop(t *testing.T) *recipes.Shop {
	t.Helper()
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	is(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	s, err := recipes.Open(t.Context(), engine.Client())
	is(t, err)
	for _, id := range []string{"ann", "bob"} {
		is(t, s.Register(t.Context(), id, id+"@example.org"))
	}
	for n := range 6 {
		_, err := s.Seats.Create(t.Context(), recipes.Seat{ID: fmt.Sprint("seat-", n)})
		is(t, err)
	}
	return s
}

func is(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func seat(t *testing.T, s *recipes.Shop, id string) recipes.Seat {
	t.Helper()
	x, err := s.Seats.Get(t.Context(), repo.Key{Partition: id})
	is(t, err)
	return x
}

func TestASeatIsHeldForAWhile(t *testing.T) {
	s := shop(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	is(t, s.Hold(ctx, "seat-0", "ann", 50*time.Millisecond))
	is(t, s.Hold(ctx, "seat-1", "ann", time.Hour))
	if err := s.Hold(ctx, "seat-1", "bob", time.Hour); !errors.Is(err, recipes.ErrTaken) {
		t.Errorf("%v", err)
	}
	is(t, s.Pay(ctx, "seat-1", "ann"))
	back := make(chan error, 1)
	var all sync.WaitGroup
	all.Go(func() {
		_ = s.Work.Run(ctx, func(ctx context.Context, job *jobs.Job[recipes.Work]) error {
			back <- s.GiveBack(ctx, job)
			return nil
		})
	})
	is(t, <-back)
	cancel()
	all.Wait()
	if x := seat(t, s, "seat-0"); x.Customer != "" || x.Release != "" {
		t.Errorf("%+v", x)
	}
	if x := seat(t, s, "seat-1"); x.Customer != "ann" || !x.Paid {
		t.Errorf("%+v", x)
	}
	if err := s.Pay(t.Context(), "seat-0", "ann"); !errors.Is(err, recipes.ErrGone) {
		t.Errorf("%v", err)
	}
	r, err := s.Work.Resource(t.Context(), "release")
	is(t, err)
	if r.Queued+r.Running+r.Dead != 0 {
		t.Errorf("%+v", r)
	}
}

func TestAnAddressIsOneCustomers(t *testing.T) {
	s := shop(t)
	if err := s.Register(t.Context(), "eve", "ann@example.org"); !errors.Is(err, repo.ErrNotUnique) {
		t.Errorf("%v", err)
	}
	is(t, s.Move(t.Context(), "ann", "ann@example.net"))
	is(t, s.Register(t.Context(), "eve", "ann@example.org"))
	r, err := s.Work.Resource(t.Context(), "outbox")
	is(t, err)
	if err := s.Move(t.Context(), "ann", "bob@example.org"); !errors.Is(err, repo.ErrNotUnique) || r.Queued != 1 {
		t.Errorf("%v, %d messages", err, r.Queued)
	}
	r, err = s.Work.Resource(t.Context(), "outbox")
	is(t, err)
	if r.Queued != 1 {
		t.Errorf("%d messages of one change", r.Queued)
	}
}

func TestNumbersHaveNoGaps(t *testing.T) {
	s := shop(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				if _, err := s.Bill(t.Context(), "ann"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for n := 1; n <= 20; n++ {
		_, err := s.Invoices.Get(t.Context(), repo.Key{Partition: n})
		is(t, err)
	}
	if number, err := s.Bill(t.Context(), "bob"); err != nil || number != 21 {
		t.Errorf("%d, %v", number, err)
	}
}

func TestFourSeatsAreEnough(t *testing.T) {
	s := shop(t)
	var taken atomic.Int64
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			switch err := s.Take(t.Context(), fmt.Sprint("seat-", n), "ann"); {
			case err == nil:
				taken.Add(1)
			case !errors.Is(err, recipes.ErrLimit):
				t.Error(err)
			}
		})
	}
	all.Wait()
	owned := 0
	for n := range 6 {
		if seat(t, s, fmt.Sprint("seat-", n)).Customer == "ann" {
			owned++
		}
	}
	if taken.Load() != 4 || owned != 4 {
		t.Errorf("%d taken, %d owned", taken.Load(), owned)
	}
}

func TestReportsAreMade(t *testing.T) {
	is(t, shop(t).Reports())
}

func TestADepositIsMadeOnce(t *testing.T) {
	s := shop(t)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /deposits/{customer}", s.Deposit)
	for i, c := range []struct {
		customer, key, amount string
		code                  int
		says                  string
	}{
		{"ann", "1", "10", 200, "10"}, {"ann", "1", "10", 200, "10"}, {"ann", "1", "11", 422, "another request"},
		{"ann", "2", "5", 200, "15"}, {"bob", "1", "7", 200, "7"}, {"bob", "", "7", 400, "Idempotency-Key"}, {"bob", "3", "x", 400, "amount"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/deposits/"+c.customer, strings.NewReader(c.amount))
		if c.key != "" {
			r.Header.Set("Idempotency-Key", c.key)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%d: %d %s", i, w.Code, w.Body)
		}
	}
}

func TestTheBankIsAskedOnce(t *testing.T) {
	s := shop(t)
	var asked atomic.Int64
	bank := func(_ context.Context, key string) (string, error) {
		asked.Add(1)
		return "receipt of " + key, nil
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if got, err := s.Charge(t.Context(), "7", bank); err != nil || got != "receipt of charge/7" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestVisitsAreCounted(t *testing.T) {
	s := shop(t)
	_, err := s.Counters.Create(t.Context(), recipes.Counter{ID: "home"})
	is(t, err)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := s.Visit(t.Context(), "home"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if c, err := s.Counters.Get(t.Context(), repo.Key{Partition: "home"}); err != nil || c.Last != 10 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestOneLeads(t *testing.T) {
	s := shop(t)
	last := int64(0)
	for range 3 {
		is(t, s.Lead(t.Context(), func(_ context.Context, token int64) error {
			if token <= last {
				t.Errorf("token %d behind %d", token, last)
			}
			last = token
			return nil
		}))
	}
}
