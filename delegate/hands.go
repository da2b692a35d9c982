package delegate

import (
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/redact"
)

// hands run what is a user's, for other callers' commands run beside it: in a goroutine of
// their own, which it may end.
type hands struct {
	of    *line
	work  chan func() // nil: there is no goroutine
	ended chan error
}

// run runs one thing after the other. The error is its panic, or the end of its goroutine.
func (h *hands) run(command string, do func()) error {
	if h.work == nil {
		h.work, h.ended = make(chan func()), make(chan error)
		go h.serve(h.work)
	}
	h.work <- do
	err := <-h.ended
	if err == nil {
		return nil
	}
	h.work = nil
	return fmt.Errorf("command %q: %w", command, err)
}

func (h *hands) serve(work <-chan func()) {
	h.of.hands.Store(goroutine.Number())
	err := errors.New("it has ended its goroutine")
	defer func() {
		if v := recover(); v != nil {
			err = redact.Panic(v)
		}
		h.of.hands.Store(0)
		h.ended <- err
	}()
	for do := range work {
		do()
		h.ended <- nil
	}
	err = nil
}

// end ends them, until they are wanted again.
func (h *hands) end() {
	if h.work != nil {
		close(h.work)
		<-h.ended //nolint:errcheck // nothing ran
		h.work = nil
	}
}
