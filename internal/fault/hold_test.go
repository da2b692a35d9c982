package fault_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
)

func TestHeldMessages(t *testing.T) {
	cases := map[fault.Kind]int{ // how often the engine has it while it is held
		fault.HoldRequest:  0,
		fault.HoldResponse: 1,
	}
	for k, atHold := range cases {
		start := func(t *testing.T) (s *server, h *fault.Held, cancel context.CancelFunc, result <-chan outcome) {
			s = newServer(t)
			in := s.always(k)
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			req := s.request(ctx, t, "UpdateItem", "body")
			ended := make(chan outcome, 1)
			go func() { ended <- do(in, req) }()
			h = <-in.Held()
			if h.Op != "UpdateItem" || h.N != 0 || string(h.Body) != "body" {
				t.Errorf("held %+v", h)
			}
			if n := s.delivered(); n != atHold {
				t.Errorf("delivered %d times while held, want %d", n, atHold)
			}
			return s, h, cancel, ended
		}
		t.Run(k.String()+", released", func(t *testing.T) {
			s, h, _, result := start(t)
			h.Release()
			h.Release()
			if o := <-result; o.err != nil || o.body != reply || s.delivered() != 1 {
				t.Errorf("delivered %d times, %+v", s.delivered(), o)
			}
		})
		t.Run(k.String()+", cancelled", func(t *testing.T) {
			s, h, cancel, result := start(t)
			cancel()
			o := <-result
			h.Release()
			if !errors.Is(o.err, context.Canceled) || s.delivered() != atHold {
				t.Errorf("delivered %d times, %+v", s.delivered(), o)
			}
		})
	}
}

func TestHoldThatNobodyTakesEndsWithTheContext(t *testing.T) {
	s := newServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := do(s.always(fault.HoldRequest), s.request(ctx, t, "UpdateItem", "body")); !errors.Is(o.err, context.Canceled) || s.delivered() != 0 {
		t.Errorf("delivered %d times, %+v", s.delivered(), o)
	}
}
