package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// patience is for how long a request is worked on.
const patience = 5 * time.Second

// api is the shop over HTTP.
func (s *shop) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.postOrder)
	mux.HandleFunc("POST /orders/{id}/cancellation", func(w http.ResponseWriter, r *http.Request) {
		o, err := s.cancel(r.Context(), r.PathValue("id"))
		answer(w, http.StatusOK, o, err)
	})
	mux.HandleFunc("POST /customers/{id}/deposits", s.postDeposit)
	mux.HandleFunc("GET /orders/{id}", show(s.orders))
	mux.HandleFunc("GET /customers/{id}", show(s.customers))
	mux.HandleFunc("GET /products/{id}", show(s.products))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		mux.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (s *shop) postOrder(w http.ResponseWriter, r *http.Request) {
	var wanted order
	err := read(r, &wanted)
	if err == nil {
		wanted.ID = r.Header.Get("Idempotency-Key")
		err = wanted.check()
	}
	if err != nil {
		answer(w, 0, nil, err)
		return
	}
	o, repeated, err := s.place(r.Context(), wanted)
	markRepeated(w, repeated && err == nil)
	answer(w, http.StatusCreated, o, err)
}

func (s *shop) postDeposit(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Cents int64 `json:"cents"`
	}
	err := read(r, &body)
	if err == nil && (body.Cents < 1 || body.Cents > maxCents) {
		err = fmt.Errorf("%w: %d cents, want 1 to %d", errRequest, body.Cents, maxCents)
	}
	if err != nil {
		answer(w, 0, nil, err)
		return
	}
	c, repeated, err := s.deposit(r.Context(), r.Header.Get("Idempotency-Key"), r.PathValue("id"), body.Cents)
	markRepeated(w, repeated && err == nil)
	answer(w, http.StatusOK, c, err)
}

// show is a handler that shows an item.
func show[T any](items repo.Repository[T]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		item, err := items.Get(r.Context(), repo.Key{Partition: r.PathValue("id")})
		answer(w, http.StatusOK, item, err)
	}
}

var errRequest = errors.New("bad request")

const (
	maxLines  = 20 // a transaction has at most 100 items
	maxPieces = 1000
	maxCents  = 1_000_000_00 // DynamoDB adds up to 38 digits: what no int64 holds nobody could read again
	maxBody   = 64 << 10
)

// read reads a request's body. Every change needs a key.
func read(r *http.Request, body any) error {
	if key := r.Header.Get("Idempotency-Key"); key == "" || len(key) > 128 {
		return fmt.Errorf("%w: the header Idempotency-Key has %d bytes, want 1 to 128", errRequest, len(key))
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody)).Decode(body); err != nil {
		return fmt.Errorf("%w: %w", errRequest, err)
	}
	return nil
}

func (o order) check() error {
	if o.Customer == "" || len(o.Lines) == 0 || len(o.Lines) > maxLines {
		return fmt.Errorf("%w: customer %q, %d lines, want 1 to %d", errRequest, o.Customer, len(o.Lines), maxLines)
	}
	for _, l := range o.Lines {
		if l.SKU == "" || l.Pieces < 1 || l.Pieces > maxPieces {
			return fmt.Errorf("%w: %d pieces of %q, want 1 to %d", errRequest, l.Pieces, l.SKU, maxPieces)
		}
	}
	return nil
}

func markRepeated(w http.ResponseWriter, repeated bool) {
	if repeated {
		w.Header().Set("Idempotent-Replayed", "true")
	}
}

// answer sends an item, or what an error means to the client.
func answer(w http.ResponseWriter, status int, item any, err error) {
	if err != nil {
		status = statusOf(err)
		item = map[string]string{"error": err.Error()}
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(item) // a client that is gone hears nothing
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, errRequest), errors.Is(err, repo.ErrKey):
		return http.StatusBadRequest
	case errors.Is(err, repo.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, errSoldOut), errors.Is(err, errFunds):
		return http.StatusConflict
	case errors.Is(err, errReused):
		return http.StatusUnprocessableEntity
	case errors.Is(err, repo.ErrConflict), errors.Is(err, repo.ErrLocked), errors.Is(err, repo.ErrOutcomeUnknown),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable // ask again with the same key
	}
	return http.StatusInternalServerError
}
