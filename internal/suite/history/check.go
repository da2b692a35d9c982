package history

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

var (
	// ErrOpen means that operations have begun and not ended; nothing was checked.
	ErrOpen = errors.New("history has operations that did not end")
	// ErrUndecided means that the time did not suffice for an answer.
	ErrUndecided = errors.New("history could not be checked in time")
)

// Violation says that a history is not linearizable, and where the longest
// order that explains its beginning gets stuck.
type Violation struct {
	Operations int      // checked
	Explained  int      // in the longest order
	Last       string   // of that order; empty if it has none
	State      State    // after it
	Stuck      []string // of known outcome: one of them must come next, and none can

	info porcupine.LinearizationInfo
}

func (v *Violation) Error() string {
	after := "at the beginning"
	if v.Last != "" {
		after = "after " + v.Last
	}
	return fmt.Sprintf("history is not linearizable: %d of %d operations fit into one order; %s the item is %v, and none of these can be next: %s",
		v.Explained, v.Operations, after, v.State, strings.Join(v.Stuck, "; "))
}

// Visualize writes porcupine's picture of the history, an HTML page.
func (v *Violation) Visualize(path string) error { return porcupine.VisualizePath(model, v.info, path) }

// Check returns nil if the history is linearizable, a [*Violation] if it is
// not, else [ErrOpen] or [ErrUndecided]. It measures the timeout in real time:
// call it outside of a bubble of virtual time. 0 is no timeout.
func (r *Recorder) Check(timeout time.Duration) error {
	ops, open := r.operations()
	if open > 0 {
		return fmt.Errorf("%w: %d", ErrOpen, open)
	}
	// Nearly all histories are fine, and those need no explanation, which
	// costs memory and time to collect.
	switch porcupine.CheckOperationsTimeout(model, ops, timeout) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%w: %d operations, %v", ErrUndecided, len(ops), timeout)
	}
	_, info := porcupine.CheckOperationsVerbose(model, ops, timeout)
	return violation(ops, info)
}

// Verify is Check for a test: on failure it also leaves the picture in a file.
func (r *Recorder) Verify(t testing.TB, timeout time.Duration) {
	t.Helper()
	err := r.Check(timeout)
	var v *Violation
	switch {
	case err == nil:
	case errors.As(err, &v):
		t.Errorf("%v\n%s", v, v.picture())
	default:
		t.Error(err)
	}
}

// picture says where the picture is. It outlives the test, unlike t.TempDir.
func (v *Violation) picture() string {
	f, err := os.CreateTemp("", "history-*.html")
	if err == nil {
		err = errors.Join(f.Close(), v.Visualize(f.Name()))
	}
	if err != nil {
		return fmt.Sprintf("no picture: %v", err)
	}
	return "picture: " + f.Name()
}

func violation(ops []porcupine.Operation, info porcupine.LinearizationInfo) *Violation {
	v := &Violation{info: info}
	for _, o := range ops {
		if o.Input != end {
			v.Operations++
		}
	}
	var longest []int // indices into ops
	for _, partition := range info.PartialLinearizations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	v.Explained = len(longest)
	now := model.Init()
	for _, i := range longest {
		_, now = model.Step(now, ops[i].Input, ops[i].Output)
		v.Last = line(ops[i])
	}
	v.State = now.(state).State
	// Only those can be next that were called before any other of the rest
	// returned.
	first := int64(1<<63 - 1)
	for i, o := range ops {
		if !slices.Contains(longest, i) {
			first = min(first, o.Return)
		}
	}
	for i, o := range ops {
		known := o.Input != end && o.Output.(Result).Verdict != Unknown
		if known && o.Call < first && !slices.Contains(longest, i) {
			v.Stuck = append(v.Stuck, line(o))
		}
	}
	return v
}

func line(o porcupine.Operation) string {
	returned := fmt.Sprint(o.Return)
	if o.Output.(Result).Verdict == Unknown {
		returned = "?"
	}
	return fmt.Sprintf("%s (%v, events %d to %s)", model.DescribeOperation(o.Input, o.Output), o.Metadata, o.Call, returned)
}
