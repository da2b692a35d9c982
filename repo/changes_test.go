package repo_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// sameChanges demands that a change is found by comparing with the stored item as by
// comparing the encodings before and after it. It reports whether it was asked.
func sameChanges[T any](t *testing.T, table *repo.Table[T], raw ddb.Item, change func(*T)) bool {
	t.Helper()
	got, want, sameKey, told, err := repo.ChangesOf(table, raw, change)
	if err != nil || !told {
		return false
	}
	if sameKey && !reflect.DeepEqual(got, want) {
		t.Errorf("%T: %v changes %+v, by the encodings %+v", *new(T), raw, got, want)
	}
	return true
}

// deep has fields that attributevalue codes, of types that do not encode themselves.
type deep struct {
	P     string         `dynamodbav:"p" repo:"pk"`
	Int   int            `dynamodbav:"int"`
	Time  time.Time      `dynamodbav:"time"`
	Bytes []byte         `dynamodbav:"bytes"`
	Map   map[string]int `dynamodbav:"map,omitempty"`
	Ptr   *uint16        `dynamodbav:"ptr,omitempty"`
	Inner Simple         `dynamodbav:"inner"`
	List  []Simple       `dynamodbav:"list"`
	Array [2]byte        `dynamodbav:"array"`
	Texts []string       `dynamodbav:"Texts"`
}

var oddSimples = []Simple{
	{},
	{Texts: []string{}},
	{Text: "t", Truth: true, Int: -1, Int8: 127, Uint: math.MaxUint64, Uint16: 7, Float: 1.5, Double: -2e300, Texts: []string{"a", ""}, Colour: "red", Grams: 0.1},
	{Float: float32(math.Inf(1)), Double: math.NaN(), Grams: float32ToGrams(math.Copysign(0, -1))},
	{Double: math.Copysign(0, -1), Texts: []string{"", "\xff"}},
}

func float32ToGrams(f float64) grams { return grams(f) }

// FuzzChanges: whatever is stored, and whatever a change makes of it.
func FuzzChanges(f *testing.F) {
	plain, omitted := mustTable[simple](f), mustTable[simpleOmitted](f)
	mixed, mixedOmitted := mustTable[deep](f), mustTable[composedOmitted](f)
	for _, seed := range []string{
		`{"p":"p","text":"t","truth":true,"int":-1,"int8":127,"uint":18446744073709551615,"uint16":7,"float":1.5,"double":-2e300,"texts":["a",""],"colour":"red","grams":0.1}`,
		`{"p":"p","text":"","truth":false,"int":0,"int8":0,"double":0,"texts":[]}`,
		`{"p":"p","texts":{"SS":["a"]},"double":{"N":"-0"},"float":{"N":"1.50"},"int":{"N":"007"}}`,
		`{"p":"p","texts":null}`,
		`{"p":"p","texts":[null]}`,
		`{"p":"p","text":null,"int":null,"double":null}`,
		`{"p":"p"}`,
		`{"p":"p","int":3,"time":"2026-01-02T03:04:05Z","bytes":{"B":"x"},"map":{"a":1},"ptr":7,"inner":{"text":"t"},"list":[{"int":1},{}],"colours":["red"],"percent":30,"number":"1","Texts":["a"]}`,
		`{"p":"p","array":{"B":"ab"},"empty":[],"bytes":{"B":""}}`,
	} {
		f.Add([]byte(seed), uint8(2), uint8(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, which, field uint8) {
		var m map[string]any
		from := json.NewDecoder(bytes.NewReader(data))
		from.UseNumber()
		if from.Decode(&m) != nil {
			return
		}
		raw := item(m)
		delete(raw, "") // an attribute has a name
		s := oddSimples[int(which)%len(oddSimples)]
		one := func(to *Simple) { // one field, or all, or none
			if n := int(field) % 13; n < 11 {
				reflect.ValueOf(to).Elem().Field(n).Set(reflect.ValueOf(s).Field(n))
			} else if n == 11 {
				*to = s
			}
		}
		sameChanges(t, plain, raw, func(p *simple) {
			for i := range p.Texts {
				p.Texts[i] += "x" // in place
			}
			one(&p.Simple)
		})
		sameChanges(t, omitted, raw, func(p *simpleOmitted) {
			to := Simple{Text: p.Text, Truth: p.Truth, Int8: p.Int8, Uint16: p.Uint16, Double: p.Double, Texts: p.Texts}
			one(&to)
			*p = simpleOmitted{p.P, to.Text, to.Truth, to.Int8, to.Uint16, to.Double, to.Texts}
		})
		sameChanges(t, mixed, raw, func(p *deep) {
			one(&p.Inner)
			if field%2 == 0 {
				p.Int, p.Texts, p.List = s.Int, s.Texts, append(p.List, s)
			}
			for name := range p.Map {
				p.Map[name]++ // in place
			}
			for i := range p.List {
				p.List[i].Int++
			}
			if len(p.Bytes) > 0 {
				p.Bytes[0]++
			}
		})
		sameChanges(t, mixedOmitted, raw, func(p *composedOmitted) {
			one(&p.Inner)
			p.Time, p.Ptr = time.Time{}, &s.Uint16
		})
	})
}

// The seeds above are asked where they should be, and a key is not changed.
func TestChangesAreAskedFor(t *testing.T) {
	plain, mixed := mustTable[simple](t), mustTable[deep](t)
	for _, raw := range []string{
		`{"p":"p","text":"t","texts":["a"],"double":{"N":"1.5"}}`,
		`{"p":"p","texts":null}`,
		`{"p":"p"}`,
		`{"p":"p","texts":{"SS":["a"]}}`,
		`{"p":"p","texts":[null]}`,
	} {
		var m map[string]any
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatal(err)
		}
		if !sameChanges(t, plain, item(m), func(p *simple) { p.Texts = append(p.Texts, "b"); p.Int++ }) {
			t.Errorf("%s: not asked", raw)
		}
	}
	if !sameChanges(t, plain, ddb.Item{"p": ddb.Text("p"), "double": ddb.Number("NaN")}, func(*simple) {}) {
		t.Error("what is no number is not asked about")
	}
	omitted := mustTable[simpleOmitted](t)
	full := ddb.Item{"p": ddb.Text("p"), "text": ddb.Text("t"), "truth": ddb.True(), "int8": ddb.Integer(1), "double": ddb.Number("1.5")}
	if !sameChanges(t, omitted, full, func(p *simpleOmitted) { *p = simpleOmitted{P: p.P} }) || !sameChanges(t, omitted, full, func(p *simpleOmitted) { p.Text = "" }) ||
		!sameChanges(t, omitted, ddb.Item{"p": ddb.Text("p")}, func(p *simpleOmitted) { p.Int8, p.Texts = 1, []string{} }) {
		t.Error("fields that are left out are not asked about")
	}
	none := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
	if !sameChanges(t, plain, ddb.Item{"p": ddb.Text("p"), "texts": none}, func(p *simple) { p.Texts = nil }) {
		t.Error("an empty list is not asked about")
	}
	raw := ddb.Item{"p": ddb.Text("p"), "int": ddb.Integer(1), "bytes": ddb.Bytes([]byte("x"))}
	got, _, sameKey, told, err := repo.ChangesOf(plain, raw, func(p *simple) { p.P = "q" })
	if err != nil || !told || sameKey {
		t.Errorf("another key: %+v, the same %v, asked %v, %v", got, sameKey, told, err)
	}
	got, _, sameKey, told, err = repo.ChangesOf(plain, raw, func(p *simple) { p.Int = 2 })
	want := ddb.Diff{Set: []ddb.Attribute{{Name: "int", Value: ddb.Integer(2)}}}
	if d := cmp.Diff(want, got, cmp.Comparer(ddb.Equal)); err != nil || !told || !sameKey || d != "" {
		t.Errorf("the same %v, asked %v, %v: %s", sameKey, told, err, d)
	}
	raw = ddb.Item{"p": ddb.Text("p"), "bytes": ddb.Bytes([]byte("x")), "map": &types.AttributeValueMemberM{Value: ddb.Item{"a": ddb.Integer(1)}}}
	if !sameChanges(t, mixed, raw, func(p *deep) { p.Bytes[0]++; p.Map["a"]++; p.Ptr = new(uint16) }) {
		t.Error("a type with nested fields is not asked")
	}
	got, _, _, _, err = repo.ChangesOf(mixed, raw, func(p *deep) { p.Bytes[0]++; delete(p.Map, "a"); p.Map = nil })
	want = ddb.Diff{Set: []ddb.Attribute{{Name: "bytes", Value: ddb.Bytes([]byte("y"))}}, Remove: []string{"map"}}
	if d := cmp.Diff(want, got, cmp.Comparer(ddb.Equal)); err != nil || d != "" {
		t.Errorf("%v: %s", err, d)
	}
}
