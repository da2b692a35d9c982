package jsontype_test

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/jsontype"
)

type (
	hidden struct{ A, b int }
	told   struct {
		A int
		b int `json:"-"`
		_ struct{}
	}
	inner    struct{ A int }
	embeds   struct{ inner }
	points   struct{ *inner }
	deep     struct{ List []map[string]*hidden }
	loop     struct{ Next *loop }
	channels struct{ C chan int }
	failed   struct{ Err error }
	renamed  struct {
		A int `json:"B"`
		B int
	}
	other  struct{ A int }
	joined struct{ left }
	left   struct {
		inner
		other
	}
	hides struct {
		inner
		A int
	} // as in Go, the outer one is meant
	written struct{ s string } // as a key, and never read
	level   int
)

func (w written) MarshalText() ([]byte, error) { return []byte(w.s), nil }
func (l *level) UnmarshalText([]byte) error    { return nil }

func TestCheck(t *testing.T) {
	_, _ = hidden{}.b, told{}.b
	for _, ok := range []reflect.Type{
		reflect.TypeFor[int](), reflect.TypeFor[told](), reflect.TypeFor[embeds](), reflect.TypeFor[loop](), reflect.TypeFor[any](), nil,
		reflect.TypeFor[time.Time](), reflect.TypeFor[*big.Int](), reflect.TypeFor[map[string]any](), reflect.TypeFor[map[uint8]int](), reflect.TypeFor[map[time.Time]int](), reflect.TypeFor[[]byte](), reflect.TypeFor[hides](),
	} {
		if err := jsontype.Check(ok); err != nil {
			t.Errorf("%v: %v", ok, err)
		}
	}
	for of, at := range map[reflect.Type]string{
		reflect.TypeFor[hidden]():   ": b is unexported",
		reflect.TypeFor[points]():   ": inner is unexported", // it cannot be set
		reflect.TypeFor[deep]():     ": List.b is unexported",
		reflect.TypeFor[channels](): ": C has a chan",
		reflect.TypeFor[func()]():   ": has a func",
		reflect.TypeFor[failed]():   ": Err has the interface error",

		reflect.TypeFor[json.Unmarshaler](): ": has the interface json.Unmarshaler",

		reflect.TypeFor[map[inner]int](): ": has keys of type jsontype_test.inner",
		reflect.TypeFor[map[bool]int]():  ": has keys of type bool",

		reflect.TypeFor[map[written]int](): ": has keys of type jsontype_test.written",
		reflect.TypeFor[map[level]int]():   ": has keys of type jsontype_test.level",
		reflect.TypeFor[[]renamed]():       `: has two fields with the name "B"`,
		reflect.TypeFor[joined]():          `: has two fields with the name "A"`,
	} {
		if err := jsontype.Check(of); err == nil || !strings.Contains(err.Error(), at) {
			t.Errorf("%v: %v, want %q", of, err, at)
		}
	}
}
