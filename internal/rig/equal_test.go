package rig

import (
	"fmt"
	"testing"
)

// told is a test that keeps what it is told of.
type told struct {
	testing.TB
	errors []string
}

func (*told) Helper() {}

func (f *told) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func TestEqualFindsWhatIsNot(t *testing.T) {
	f := &told{}
	Equal(f, 3, 3, "requests")
	Equal(f, "a", "b", "name %d", 7)
	if fmt.Sprint(f.errors) != "[name 7: a, want b]" {
		t.Errorf("%q", f.errors)
	}
}
