package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/repo"
)

// event is what a server says on its standard output: where it listens.
type event struct {
	Address string `json:"address"`
}

// answer is what a customer is told.
type answer struct {
	Invoice int    `json:"invoice,omitempty"`
	Refused string `json:"refused,omitempty"`
}

// What a request may be refused with, for good.
var refusals = map[error]string{errTaken: "taken", errLimit: "limit", errGone: "gone", repo.ErrNotUnique: "email"}

// reply answers a request. What is not refused and not done may be asked again: the same
// request does the same thing once.
func reply(w http.ResponseWriter, a answer, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusServiceUnavailable
	}
	for refusal, text := range refusals {
		if errors.Is(err, refusal) {
			status, a.Refused = http.StatusConflict, text
		}
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a) // who does not hear it asks again
}

func (s *shop) api(hold time.Duration) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /customers/{id}", func(w http.ResponseWriter, r *http.Request) {
		email, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<10))
		if err == nil {
			err = s.register(r.Context(), r.PathValue("id"), string(email))
		}
		reply(w, answer{}, unlessRepeated(err))
	})
	mux.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		o := order{}
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&o)
		if o.ID = r.PathValue("id"); err == nil {
			err = s.hold(r.Context(), o, hold)
		}
		reply(w, answer{}, unlessRepeated(err))
	})
	mux.HandleFunc("POST /orders/{id}/payment", func(w http.ResponseWriter, r *http.Request) {
		o, err := s.pay(r.Context(), r.PathValue("id"))
		reply(w, answer{Invoice: o.Invoice}, err)
	})
	return mux
}

// unlessRepeated takes what is there already for done: ids are made by those who ask, who
// ask again where they have no answer.
func unlessRepeated(err error) error {
	if errors.Is(err, repo.ErrExists) {
		return nil
	}
	return err
}

// serve is a server's process, until it is told to end or its parent is gone.
func serve(ctx context.Context, s settings, client *dynamodb.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shop, err := openShop(client, s.tables)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: shop.api(s.hold), ReadHeaderTimeout: patience}
	var running sync.WaitGroup
	running.Go(func() { _ = shop.releases.Run(ctx, shop.giveBack) })
	running.Go(func() {
		<-ctx.Done()
		ending, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer stop()
		_ = server.Shutdown(ending) // when those under way are answered
	})
	defer running.Wait()
	defer cancel()
	crew.Say(event{listener.Addr().String()})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
