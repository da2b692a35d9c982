package ddb

import (
	"encoding/json"
	"slices"
	"testing"
)

var anyKnown = []string{"Attributes", "ConsumedCapacity", "Count", "Item", "Items"}

// What is seen of a body without decoding it is what decoding it would have shown.
func TestMembers(t *testing.T) {
	for body, strange := range map[string][]string{
		`{}`: nil,
		`{"Attributes":{"a":{"S":"x,\"y\":{"},"b":{"L":[{"S":"}"}]}}}`:                               nil,
		`{"Item":{"message":{"S":"m"}},"ConsumedCapacity":{"Table":{"message":1}}}`:                  nil,
		`{ "Item" : null , "Count" : 1 ,` + "\n\t" + `"Items" : [ "message" , {"message":[1,2]} ] }`: nil,
		`{"message":"denied"}`:               {"message"},
		`{"Item":{},"message":"denied"}`:     {"Item", "message"},
		`{"Item":"x,","message":"denied"}`:   {"Item", "message"},
		`{"Item":["x"],"":{"Item":1}}`:       {"", "Item"},
		`{"\u0049tem":{}}`:                   {"Item"}, // decoded it is known
		`{"\"Item":{}}`:                      {`"Item`},
		`{"Item":"\\","message":"\\\"Item"}`: {"Item", "message"},
		`["message"]`:                        nil, // nor can it be decoded
		`{"message`:                          nil,
		``:                                   nil,
	} {
		names := membersOf([]byte(body), anyKnown)
		if slices.Sort(names); !slices.Equal(names, strange) {
			t.Errorf("%s: %q, want %q", body, names, strange)
		}
	}
	usual := []byte(`{"Attributes":{"id":{"S":"apple"},"tags":{"L":[{"S":"fresh"}]}}}`)
	if n := testing.AllocsPerRun(10, func() { membersOf(usual, anyKnown) }); n > 0 {
		t.Errorf("%v allocations for what is usual", n)
	}
}

// A body that passes without being decoded has no member that is not known.
func FuzzMembers(f *testing.F) {
	for _, body := range []string{`{"Item":{"a":{"S":"x"}},"Count":1}`, `{"Items":[{"a":"\""}],"message":"\\"}`, `{"Item":1} {"message":2}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var said map[string]json.RawMessage
		if json.Unmarshal(body, &said) != nil || !only(body, anyKnown) {
			return
		}
		for name := range said {
			if !slices.Contains(anyKnown, name) {
				t.Errorf("%s: %q was not seen", body, name)
			}
		}
	})
}
