package search_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dynahold/dynahold/internal/search"
)

// counts steps by one and by two, up to most; bad is a number that must not come.
func counts(most, bad int) func(*int, search.Emit[int, string]) {
	return func(n *int, emit search.Emit[int, string]) {
		for _, by := range []int{1, 2} {
			if to := *n + by; to <= most {
				wrong := ""
				if to == bad {
					wrong = "it came"
				}
				emit(fmt.Sprint("+", by), to, wrong)
			}
		}
	}
}

func TestAllStatesAreVisited(t *testing.T) {
	if f := search.All([]int{0}, counts(100, 0)); f.States != 101 || f.Wrong != "" || f.Way != nil {
		t.Errorf("%+v", f)
	}
}

func TestTheShortestWayIsShown(t *testing.T) {
	f := search.All([]int{0, 1}, counts(100, 7))
	trace := f.Trace(func(s search.Step[int, string]) string { return fmt.Sprint(s.From, s.Name) })
	if f.Wrong != "it came" || !slices.Equal(trace, []string{"1+2", "3+2", "5+2"}) {
		t.Errorf("%s, %v", f.Wrong, trace)
	}
}
