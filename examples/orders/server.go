package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// event is what a server says on its standard output: where it listens.
type event struct {
	Who     string `json:"who"`
	Address string `json:"address"`
}

// wrap lets tests stand between clients and the shop.
var wrap = func(api http.Handler) http.Handler { return api }

// newServer is a server that no client keeps busy for long, by silence or by size. The
// time to write begins with the request, so it has that to read and to work in it.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: patience,
		ReadTimeout:       2 * patience,
		WriteTimeout:      4 * patience,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
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
	server := newServer(wrap(shop.api()))
	var running sync.WaitGroup
	running.Go(func() { shop.relay(ctx, s.warehouse) })
	running.Go(func() {
		<-ctx.Done()
		ending, stop := context.WithTimeout(context.WithoutCancel(ctx), patience+time.Second)
		defer stop()
		_ = server.Shutdown(ending) // when those under way are answered
	})
	defer running.Wait()
	defer cancel()
	crew.Say(event{s.server, listener.Addr().String()})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
