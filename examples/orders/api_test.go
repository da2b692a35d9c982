package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/repo"
)

// opened is a shop with two products and a customer, on an engine of the test.
func opened(t *testing.T) *shop {
	t.Helper()
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	s, err := openShop(engine.Client(), "orders-test-"+rand.Text()[:8]+"-")
	if err == nil {
		err = s.ensureTables(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []product{{SKU: "tea", Price: 300, Stock: 10}, {SKU: "cup", Price: 900, Stock: 1}} {
		if _, err := s.products.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.customers.Create(t.Context(), customer{ID: "ann", Balance: 2000}); err != nil {
		t.Fatal(err)
	}
	return s
}

// post sends a request and returns the answer: its status, whether it is that of an
// earlier request, and its body.
func post(t *testing.T, s *shop, path, key, body string) (status int, repeated bool, text string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	s.api().ServeHTTP(w, r)
	return w.Code, w.Header().Get("Idempotent-Replayed") != "", w.Body.String()
}

// has checks what is left.
func has(t *testing.T, s *shop, tea, cups, cents int64) {
	t.Helper()
	p, err1 := s.products.Get(t.Context(), repo.Key{Partition: "tea"})
	q, err2 := s.products.Get(t.Context(), repo.Key{Partition: "cup"})
	c, err3 := s.customers.Get(t.Context(), repo.Key{Partition: "ann"})
	if err1 != nil || err2 != nil || err3 != nil || p.Stock != tea || q.Stock != cups || c.Balance != cents {
		t.Errorf("%d tea, %d cups, %d cents, want %d, %d, %d (%v, %v, %v)", p.Stock, q.Stock, c.Balance, tea, cups, cents, err1, err2, err3)
	}
}

const teaAndCup = `{"lines":[{"sku":"tea","pieces":2},{"sku":"cup","pieces":1}]}`

func TestAnOrderIsPlacedOnceAndAsAWhole(t *testing.T) {
	s := opened(t)
	status, repeated, first := post(t, s, "/customers/ann/orders", "k1", teaAndCup)
	if status != http.StatusCreated || repeated {
		t.Fatalf("%d %s", status, first)
	}
	has(t, s, 8, 0, 500)
	// The cups are gone by now: whoever asks again is told of the order all the same.
	if status, repeated, text := post(t, s, "/customers/ann/orders", "k1", teaAndCup); status != http.StatusCreated || !repeated || text != first {
		t.Errorf("again: %d %v %s, want %s", status, repeated, text, first)
	}
	// Another order gets no cup, so it gets no tea.
	if status, _, text := post(t, s, "/customers/ann/orders", "k2", teaAndCup); status != http.StatusConflict || !strings.Contains(text, "sold out") {
		t.Errorf("no cup: %d %s", status, text)
	}
	if status, _, text := post(t, s, "/customers/ann/orders", "k3", `{"lines":[{"sku":"tea","pieces":2}]}`); status != http.StatusConflict || !strings.Contains(text, "not enough money") {
		t.Errorf("no money: %d %s", status, text)
	}
	has(t, s, 8, 0, 500)
	if status, repeated, text := post(t, s, "/customers/ann/orders", "k1", `{"lines":[{"sku":"tea","pieces":1}]}`); status != http.StatusUnprocessableEntity || repeated {
		t.Errorf("another order with the key: %d %v %s", status, repeated, text)
	}
	for range 2 {
		if status, _, text := post(t, s, "/customers/ann/orders/k1/cancellation", "", ""); status != http.StatusOK || !strings.Contains(text, `"cancelled"`) {
			t.Errorf("cancelled: %d %s", status, text)
		}
		has(t, s, 10, 1, 2000)
	}
	ids := map[string]bool{}
	for n, err := range s.notices.Table().Query(t.Context(), outbox) {
		if err != nil {
			t.Fatal(err)
		}
		ids[n.ID] = true
	}
	if len(ids) != 2 || !ids["ann/k1/placed"] || !ids["ann/k1/cancelled"] {
		t.Errorf("the outbox has %v", ids)
	}
}

// TestTwinsAreOne: requests with one key at the same time.
func TestTwinsAreOne(t *testing.T) {
	s := opened(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if status, _, text := post(t, s, "/customers/ann/orders", "k1", teaAndCup); status != http.StatusCreated {
				t.Errorf("%d %s", status, text)
			}
			if status, _, text := post(t, s, "/customers/ann/deposits", "d1", `{"cents":100}`); status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	wg.Wait()
	has(t, s, 8, 0, 600)
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	s := opened(t)
	for _, c := range []struct {
		path, key, body string
		want            int
	}{
		{"/customers/ann/orders", "", teaAndCup, http.StatusBadRequest},
		{"/customers/ann/orders", strings.Repeat("k", 129), teaAndCup, http.StatusBadRequest},
		{"/customers/ann/orders", "k\xff", teaAndCup, http.StatusBadRequest}, // would be stored as another
		{"/customers/ann/orders", "k 1", teaAndCup, http.StatusBadRequest},
		{"/customers/ann/orders", "k1", `{"lines":"` + strings.Repeat("x", maxBody) + `"}`, http.StatusRequestEntityTooLarge},
		{"/customers/ann/orders", "k1", `{"lines":`, http.StatusBadRequest},
		{"/customers/ann/orders", "k1", `{"lines":[]}`, http.StatusBadRequest},
		{"/customers/ann/orders", "k1", `{"lines":[{"sku":"tea","pieces":-1}]}`, http.StatusBadRequest},
		{"/customers/ann/orders", "k1", `{"lines":[{"sku":"gold","pieces":1}]}`, http.StatusNotFound},
		{"/customers/eve/orders", "k1", `{"lines":[{"sku":"tea","pieces":1}]}`, http.StatusNotFound},
		{"/customers/ann/orders/k1/cancellation", "k1", "", http.StatusNotFound},
		{"/customers/eve/deposits", "k1", `{"cents":1}`, http.StatusNotFound},
		{"/customers/ann/deposits", "k1", `{"cents":-1}`, http.StatusBadRequest},
		{"/customers/ann/deposits", "k1", `{"cents":9223372036854775807}`, http.StatusBadRequest},
		{"/customers/ann/deposits", "k2", `{"cents":9223372036854775807}`, http.StatusBadRequest},
		{"/elsewhere", "k1", "", http.StatusNotFound},
	} {
		if status, _, text := post(t, s, c.path, c.key, c.body); status != c.want {
			t.Errorf("%s %.20s %s: %d %s, want %d", c.path, c.key, c.body, status, text, c.want)
		}
	}
	has(t, s, 10, 1, 2000)
}

func TestItemsAreShown(t *testing.T) {
	s := opened(t)
	for path, want := range map[string]string{
		"/products/tea": `{"sku":"tea","price":300,"stock":10}`, "/customers/ann": `{"id":"ann","balance":2000}`,
	} {
		w := httptest.NewRecorder()
		s.api().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != want {
			t.Errorf("%s: %d %s, want %s", path, w.Code, got, want)
		}
	}
}

// TestNoticesReachTheWarehouse: also those that it has refused at first.
func TestNoticesReachTheWarehouse(t *testing.T) {
	s := opened(t)
	if status, _, text := post(t, s, "/customers/ann/orders", "k1", teaAndCup); status != http.StatusCreated {
		t.Fatal(text)
	}
	came := make(chan notice, 10)
	refusals := 1
	house := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refusals--; refusals >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var n notice
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusNoContent)
		came <- n
	}))
	defer house.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var relay sync.WaitGroup
	relay.Go(func() { s.relay(ctx, house.URL) })
	defer relay.Wait()
	defer cancel()
	if got, want := fmt.Sprint(<-came), fmt.Sprint(notice{ID: "ann/k1/placed", Customer: "ann", Order: "k1", What: placed}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
