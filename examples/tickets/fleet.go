package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

const patience = 5 * time.Second

// starter starts a server's process.
type starter func(ctx context.Context, name string) (*crew.Crew[event], error)

// fleet are the servers. One that was killed is started again.
type fleet struct {
	start starter

	mu      sync.Mutex
	servers []server      // guarded by mu, as all below
	came    chan struct{} // closed when a server is there
	next    int           // whose turn it is
	kills   int
}

type server struct {
	crew    *crew.Crew[event] // of this server alone
	address string            // "": it is not there
	lives   int
	killed  bool
}

func newFleet(servers int, start starter) *fleet {
	return &fleet{start: start, servers: make([]server, servers), came: make(chan struct{})}
}

// keep has a server at work until ctx is done. One that ends by itself is an error.
func (f *fleet) keep(ctx context.Context, n int) error {
	for ctx.Err() == nil {
		f.mu.Lock()
		f.servers[n].lives++
		name := fmt.Sprintf("s%d.%d.", n+1, f.servers[n].lives)
		f.mu.Unlock()
		c, err := f.start(ctx, name)
		if err != nil {
			return err
		}
		for e := range c.Heard {
			f.arrived(n, c, e.Address)
		}
		f.mu.Lock()
		killed := f.servers[n].killed
		f.servers[n].address, f.servers[n].killed = "", false
		f.mu.Unlock()
		if !killed && ctx.Err() == nil {
			return errors.Join(append(c.Errs(), fmt.Errorf("server %s has ended", name))...)
		}
	}
	return nil
}

func (f *fleet) arrived(n int, c *crew.Crew[event], address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers[n].crew, f.servers[n].address = c, address
	close(f.came)
	f.came = make(chan struct{})
}

// with hands over a server that is there, each in turn; it waits until there is one.
func (f *fleet) with(ctx context.Context, do func(*server)) error {
	for {
		f.mu.Lock()
		came := f.came
		for range f.servers {
			f.next = (f.next + 1) % len(f.servers)
			if s := &f.servers[f.next]; s.address != "" {
				do(s)
				f.mu.Unlock()
				return nil
			}
		}
		f.mu.Unlock()
		select {
		case <-came:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// address is that of a server.
func (f *fleet) address(ctx context.Context) (address string, err error) {
	err = f.with(ctx, func(s *server) { address = s.address })
	return address, err
}

// kill ends a server at once.
func (f *fleet) kill(ctx context.Context) error {
	return f.with(ctx, func(s *server) {
		if s.crew.Kill(s.crew.Names[0]) == nil { // else it ends by itself just now
			s.killed, s.address = true, ""
			f.kills++
		}
	})
}
