package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// patience is for how long a request is worked on.
const patience = 5 * time.Second

// api is the shop over HTTP. All of an order is found by its customer alone. That the
// caller is that customer is for whoever authenticates in front of this to see to: the
// example has no users.
func (s *shop) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /customers/{customer}/orders", s.postOrder)
	mux.HandleFunc("POST /customers/{customer}/orders/{id}/cancellation", func(w http.ResponseWriter, r *http.Request) {
		o, err := s.cancel(r.Context(), orderKey(r))
		answer(w, r, http.StatusOK, o, err)
	})
	mux.HandleFunc("POST /customers/{id}/deposits", s.postDeposit)
	mux.HandleFunc("GET /customers/{customer}/orders/{id}", show(s.orders, orderKey))
	mux.HandleFunc("GET /customers/{id}", show(s.customers, idKey))
	mux.HandleFunc("GET /products/{id}", show(s.products, idKey))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		mux.ServeHTTP(w, r)
	})
}

func orderKey(r *http.Request) repo.Key {
	return order{Customer: r.PathValue("customer"), ID: r.PathValue("id")}.key()
}

func idKey(r *http.Request) repo.Key { return repo.Key{Partition: r.PathValue("id")} }

func (s *shop) postOrder(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Lines []line `json:"lines"`
	}
	key, err := read(r, &body)
	wanted := order{Customer: r.PathValue("customer"), ID: key, Lines: body.Lines}
	if err == nil {
		err = wanted.check()
	}
	if err != nil {
		answer(w, r, 0, nil, err)
		return
	}
	o, repeated, err := s.place(r.Context(), wanted)
	markRepeated(w, repeated && err == nil)
	answer(w, r, http.StatusCreated, o, err)
}

func (s *shop) postDeposit(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Cents int64 `json:"cents"`
	}
	key, err := read(r, &body)
	if err == nil && (body.Cents < 1 || body.Cents > maxCents) {
		err = badRequest("%d cents, want 1 to %d", body.Cents, maxCents)
	}
	if err != nil {
		answer(w, r, 0, nil, err)
		return
	}
	c, repeated, err := s.deposit(r.Context(), key, r.PathValue("id"), body.Cents)
	markRepeated(w, repeated && err == nil)
	answer(w, r, http.StatusOK, c, err)
}

// show is a handler that shows an item.
func show[T any](items repo.Repository[T], key func(*http.Request) repo.Key) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		item, err := items.Get(r.Context(), key(r))
		answer(w, r, http.StatusOK, item, err)
	}
}

func badRequest(format string, args ...any) error {
	return refuse(http.StatusBadRequest, "bad request: "+format, args...)
}

const (
	maxLines  = 20 // a transaction has at most 100 items
	maxPieces = 1000
	maxCents  = 1_000_000_00 // DynamoDB adds up to 38 digits: what no int64 holds nobody could read again
	maxKey    = 128
	maxBody   = 64 << 10
)

// read reads a request's key, which every change needs, and its body.
func read(r *http.Request, body any) (key string, err error) {
	key = r.Header.Get("Idempotency-Key")
	if key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", badRequest("the header Idempotency-Key has %d bytes, want 1 to %d visible ones of ASCII", len(key), maxKey)
	}
	var large *http.MaxBytesError
	switch err := json.NewDecoder(r.Body).Decode(body); {
	case errors.As(err, &large):
		return "", refuse(http.StatusRequestEntityTooLarge, "the body is above %d bytes", large.Limit)
	case err != nil:
		return "", badRequest("the body is not the JSON that is wanted")
	}
	return key, nil
}

func (o order) check() error {
	if len(o.Lines) == 0 || len(o.Lines) > maxLines {
		return badRequest("%d lines, want 1 to %d", len(o.Lines), maxLines)
	}
	for _, l := range o.Lines {
		if l.SKU == "" || l.Pieces < 1 || l.Pieces > maxPieces {
			return badRequest("%d pieces of %q, want 1 to %d", l.Pieces, l.SKU, maxPieces)
		}
	}
	return nil
}

func markRepeated(w http.ResponseWriter, repeated bool) {
	if repeated {
		w.Header().Set("Idempotent-Replayed", "true")
	}
}
