package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/dynahold/dynahold/repo"
)

// A refusal is what a client is told in these words: they are the shop's own. Any other
// error may name tables, endpoints and items, and stays in the log.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

func errReused() error {
	return refuse(http.StatusUnprocessableEntity, "the key was used for another request")
}

// refusalOf is what an error means to the client.
func refusalOf(err error) *refusal {
	var own *refusal
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, repo.ErrMismatch):
		return refusalOf(errReused())
	case errors.Is(err, repo.ErrKey):
		return &refusal{http.StatusBadRequest, "bad request: an id that cannot be one"}
	case errors.Is(err, repo.ErrNotFound):
		return &refusal{http.StatusNotFound, "not found"}
	case errors.Is(err, repo.ErrConflict), errors.Is(err, repo.ErrLocked), errors.Is(err, repo.ErrOutcomeUnknown),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &refusal{http.StatusServiceUnavailable, "ask again with the same key"}
	}
	return &refusal{http.StatusInternalServerError, "internal error"}
}

// answer sends an item, or what an error means to the client. What the client is not
// told is found in the log, by the id that it is told.
func answer(w http.ResponseWriter, r *http.Request, status int, item any, err error) {
	if err != nil {
		told := refusalOf(err)
		body := map[string]string{"error": told.text}
		if told.status >= http.StatusInternalServerError {
			body["request"] = rand.Text()
			slog.ErrorContext(r.Context(), "request failed", "request", body["request"], "method", r.Method, "path", r.URL.Path, "status", told.status, "error", err)
		}
		status, item = told.status, body
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(item) // a client that is gone hears nothing
}
