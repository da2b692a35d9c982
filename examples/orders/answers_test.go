package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/localdb"
)

// TestAKeyIsItsCustomers: who guesses or overhears another customer's key gets nothing by it.
func TestAKeyIsItsCustomers(t *testing.T) {
	s := opened(t)
	if _, err := s.customers.Create(t.Context(), customer{ID: "bob", Balance: 600}); err != nil {
		t.Fatal(err)
	}
	if status, _, text := post(t, s, "/customers/ann/orders", "k1", teaAndCup); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		s.api().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if status, text := get("/customers/bob/orders/k1"); status != http.StatusNotFound {
		t.Errorf("bob reads ann's order: %d %s", status, text)
	}
	if status, _, text := post(t, s, "/customers/bob/orders/k1/cancellation", "k1", ""); status != http.StatusNotFound {
		t.Errorf("bob cancels ann's order: %d %s", status, text)
	}
	// The key does for an order of bob's own.
	if status, repeated, text := post(t, s, "/customers/bob/orders", "k1", `{"lines":[{"sku":"tea","pieces":1}]}`); status != http.StatusCreated || repeated || !strings.Contains(text, `"bob"`) {
		t.Errorf("bob's order: %d %v %s", status, repeated, text)
	}
	if status, _, text := post(t, s, "/customers/bob/orders/k1/cancellation", "k1", ""); status != http.StatusOK {
		t.Errorf("bob cancels his order: %d %s", status, text)
	}
	if status, text := get("/customers/ann/orders/k1"); status != http.StatusOK || !strings.Contains(text, `"placed"`) {
		t.Errorf("ann's order: %d %s", status, text)
	}
	has(t, s, 8, 0, 500)
	// And no name of a notice is made of two customers' parts.
	if a, b := (order{Customer: "a/b", ID: "c"}).notice(), (order{Customer: "a", ID: "b/c"}).notice(); a.ID == b.ID {
		t.Errorf("two orders have the notice %s", a.ID)
	}
}

func TestADepositsKeyIsForItsAmount(t *testing.T) {
	s := opened(t)
	const deposits = "/customers/ann/deposits"
	if status, _, text := post(t, s, deposits, "d1", `{"cents":100}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if status, repeated, text := post(t, s, deposits, "d1", `{"cents":200}`); status != http.StatusUnprocessableEntity || repeated || strings.Contains(text, "cents") {
		t.Errorf("another amount: %d %v %s", status, repeated, text)
	}
	if status, repeated, text := post(t, s, deposits, "d1", `{"cents":100}`); status != http.StatusOK || !repeated {
		t.Errorf("again: %d %v %s", status, repeated, text)
	}
	has(t, s, 10, 1, 2100)
}

// TestErrorsKeepTheShopsAffairs: the log has what happened, the client what to quote.
func TestErrorsKeepTheShopsAffairs(t *testing.T) {
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	s, err := openShop(engine.Client(), "no-such-") // its tables are missing
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	for path, body := range map[string]string{"/customers/ann/orders": teaAndCup, "/customers/ann/deposits": `{"cents":1}`, "/customers/ann/orders/k1/cancellation": ""} {
		status, _, text := post(t, s, path, "k1", body)
		var told map[string]string
		if err := json.Unmarshal([]byte(text), &told); err != nil || status != http.StatusInternalServerError {
			t.Fatalf("%s: %d %s", path, status, text)
		}
		if len(told) != 2 || told["error"] != "internal error" || told["request"] == "" {
			t.Errorf("%s: the client is told %s", path, text)
		}
		if log := logged.String(); !strings.Contains(log, told["request"]) || !strings.Contains(log, "no-such-") {
			t.Errorf("%s: the log has %s", path, log)
		}
	}
	// Nor do the other answers name a table or a key.
	s = opened(t)
	if _, _, text := post(t, s, "/customers/eve/deposits", "k1", `{"cents":1}`); strings.TrimSpace(text) != `{"error":"not found"}` {
		t.Errorf("not found: %s", text)
	}
	if _, _, text := post(t, s, "/customers/ann/orders", "k1", `{"lines":[{"sku":"cup","pieces":2}]}`); strings.TrimSpace(text) != `{"error":"sold out: 1 of 2 pieces of cup"}` {
		t.Errorf("sold out: %s", text)
	}
}

func TestTheServerHasItsLimits(t *testing.T) {
	s := newServer(http.NotFoundHandler())
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.IdleTimeout <= 0 || s.WriteTimeout < s.ReadTimeout+patience {
		t.Errorf("time-outs: %v, %v, %v, %v", s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Large", strings.Repeat("x", 32<<10))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 32 KB: %s", resp.Status)
	}
	if err := s.Close(); err != nil || !errors.Is(<-ended, http.ErrServerClosed) {
		t.Error(err)
	}
}
