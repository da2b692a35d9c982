package load

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dynahold/dynahold/localdb"
)

// Harness runs workloads against one engine. In virtual time several can run at
// once: each has a clock of its own, and they do not change each other's
// figures. In real time they would.
type Harness struct {
	t *testing.T // makes bubbles of virtual time; nil: there are none

	mu     sync.Mutex      // guards what follows
	engine *localdb.Engine // nil until it is needed
	own    bool            // the engine was started here
}

// New makes a harness for a test. A nil engine means one of its own, which
// ends with the test.
func New(t *testing.T, engine *localdb.Engine) *Harness {
	h := &Harness{engine: engine, t: t}
	t.Cleanup(h.Close)
	return h
}

// RealTime makes a harness without virtual time, for programs that do not
// start by [Main]. A nil engine means one of its own, which [Harness.Close]
// ends.
func RealTime(engine *localdb.Engine) *Harness { return &Harness{engine: engine} }

// Close ends the engine if the harness has started it; no run may be under way.
func (h *Harness) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own {
		_ = h.engine.Close()
		h.engine, h.own = nil, false
	}
}

// start starts the engine at the first call.
func (h *Harness) start(ctx context.Context) (*localdb.Engine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.engine == nil {
		engine, err := localdb.Start(ctx, localdb.Config{})
		if err != nil {
			return nil, err
		}
		h.engine, h.own = engine, true
	}
	return h.engine, nil
}

// bubble runs f in virtual time. A panic in it, and a deadlock of all its
// goroutines, ends the program with its stack.
func (h *Harness) bubble(name string, f func() error) error {
	if h.t == nil {
		return errors.New("load: no virtual time here: start the program by load.Main")
	}
	err := errors.New("load: the run ended without a result") // by runtime.Goexit
	h.t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(*testing.T) { err = f() })
	})
	return err
}
