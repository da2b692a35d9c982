package repo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

func mustTable[T any](t testing.TB) *repo.Table[T] {
	t.Helper()
	table, err := repo.NewTable[T](dynamodb.New(dynamodb.Options{Region: "x"}), "table", repo.TableConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

type (
	textKeys struct {
		P string `repo:"pk"`
		S string `repo:"sk"`
	}
	byteKeys struct {
		P []byte `repo:"pk"`
		S []byte `repo:"sk"`
	}
	numberKeys struct {
		P int64   `repo:"pk"`
		S float64 `repo:"sk"`
	}
)

// encodes demands that a key is refused as such, or becomes the two attributes
// that the table has, and the same ones by way of an item.
func encodes[T any](t *testing.T, table *repo.Table[T], item T, kind string, valid bool) {
	t.Helper()
	key := table.KeyOf(item)
	raw, err := table.EncodeKey(key)
	whole, err2 := table.Encode(item)
	if !valid || err != nil || err2 != nil {
		if valid || !errors.Is(err, repo.ErrKey) || !errors.Is(err2, repo.ErrKey) {
			t.Errorf("key %v, valid %v: as a key %v, in an item %v", key, valid, err, err2)
		}
		return
	}
	if !ddb.EqualItems(raw, whole) || len(raw) != 2 || ddb.TypeName(raw["P"]) != kind || ddb.TypeName(raw["S"]) != kind {
		t.Errorf("key %v is %v, in an item %v", key, raw, whole)
	}
	back, err := table.Decode(raw)
	if again, err2 := table.Encode(back); err != nil || err2 != nil || !ddb.EqualItems(again, raw) {
		t.Errorf("key %v comes back as %v: %v, %v", raw, again, err, err2)
	}
}

func FuzzKeys(f *testing.F) {
	texts, binaries, numbers := mustTable[textKeys](f), mustTable[byteKeys](f), mustTable[numberKeys](f)
	f.Add("p", uint16(0), "s", uint16(0), int64(1), 1.5)
	f.Add("", uint16(0), "s", uint16(0), int64(0), math.Inf(1))
	f.Add("p", uint16(0), "", uint16(0), int64(math.MinInt64), math.NaN())
	f.Add("\xff", uint16(0), "#:\x00", uint16(0), int64(math.MaxInt64), math.Copysign(0, -1))
	f.Add("", uint16(2049), "s", uint16(0), int64(-1), 0.1)
	f.Add("", uint16(2048), "", uint16(1024), int64(1), 1e125)
	f.Add("p", uint16(0), "", uint16(1025), int64(1), 1e-130)
	f.Fuzz(func(t *testing.T, p string, morep uint16, s string, mores uint16, n int64, x float64) {
		p, s = p+strings.Repeat("x", int(morep%3000)), s+strings.Repeat("x", int(mores%2000))
		fits := len(p) > 0 && len(p) <= 2048 && len(s) > 0 && len(s) <= 1024
		encodes(t, texts, textKeys{p, s}, "S", fits && utf8.ValidString(p) && utf8.ValidString(s))
		encodes(t, binaries, byteKeys{[]byte(p), []byte(s)}, "B", fits)
		if a := math.Abs(x); math.IsNaN(x) || a >= 1e126 || a > 0 && a < 1e-130 {
			if _, err := numbers.EncodeKey(repo.Key{Partition: n, Sort: x}); !errors.Is(err, repo.ErrKey) {
				t.Errorf("%v as a key: %v", x, err)
			}
		} else {
			encodes(t, numbers, numberKeys{n, x}, "N", true)
		}
		for _, part := range []any{p, []byte(s), n, x, int8(n), uint64(n), float32(x), &n, []string{p}, map[string]int{p: 1}, struct{ P string }{p}, nil} { // any number will do
			raw, err := texts.EncodeKey(repo.Key{Partition: part, Sort: "s"})
			if err != nil && !errors.Is(err, repo.ErrKey) || err == nil && ddb.TypeName(raw["P"]) != "S" {
				t.Errorf("%T as a text: %v, %v", part, raw, err)
			}
		}
	})
}

type tree struct {
	Leaves []tree         `dynamodbav:"leaves"`
	Named  map[string]any `dynamodbav:"named"`
}

// everything has a field of each kind that a type can have.
type everything struct {
	P       string                  `dynamodbav:"p" repo:"pk"`
	Version int64                   `dynamodbav:"v" repo:"version"`
	At      attributevalue.UnixTime `dynamodbav:"at" repo:"eventtime"`
	I       int8                    `dynamodbav:"i"`
	F       float32                 `dynamodbav:"f,omitempty"`
	Ptr     *uint16                 `dynamodbav:"ptr"`
	Any     any                     `dynamodbav:"any"`
	Bytes   []byte                  `dynamodbav:"bytes"`
	Set     []string                `dynamodbav:"set,stringset,omitempty"`
	Numbers []int                   `dynamodbav:"numbers,numberset,omitempty"`
	List    []map[string]int        `dynamodbav:"list"`
	Nested  *tree                   `dynamodbav:"nested"`
	Time    time.Time               `dynamodbav:"time"`
	Number  attributevalue.Number   `dynamodbav:"number"`
	Bool    bool                    `dynamodbav:"bool"`
	Array   [4]byte                 `dynamodbav:"array"`
	// lockedby tempts the decoder, which matches names without case.
	Folded string `dynamodbav:"lockedby"`
}

// value makes an attribute of JSON: a text, number, truth, null, list or map
// is one, and {"B": ...}, {"SS": ...}, {"NS": ...}, {"N": ...} are the rest.
// DynamoDB keeps no empty sets.
func value(v any) types.AttributeValue {
	switch v := v.(type) {
	case string:
		return ddb.Text(v)
	case json.Number:
		return ddb.Number(v.String())
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case []any:
		l := &types.AttributeValueMemberL{}
		for _, e := range v {
			l.Value = append(l.Value, value(e))
		}
		return l
	case map[string]any:
		if text, ok := v["B"].(string); ok {
			return ddb.Bytes([]byte(text))
		}
		if text, ok := v["N"].(string); ok {
			return ddb.Number(text)
		}
		if list, ok := v["SS"].([]any); ok && len(list) > 0 {
			return &types.AttributeValueMemberSS{Value: texts(list)}
		}
		if list, ok := v["NS"].([]any); ok && len(list) > 0 {
			return &types.AttributeValueMemberNS{Value: texts(list)}
		}
		return &types.AttributeValueMemberM{Value: item(v)}
	}
	return &types.AttributeValueMemberNULL{Value: true}
}

func texts(list []any) (all []string) {
	for _, e := range list {
		s, _ := e.(string)
		all = append(all, s)
	}
	return all
}

func item(m map[string]any) ddb.Item {
	out := ddb.Item{}
	for name, v := range m {
		out[name] = value(v)
	}
	return out
}

// withoutNulls is an item without what is null, which a type may leave out: the SDK writes
// an empty set, once, as null.
func withoutNulls(item ddb.Item) ddb.Item {
	maps.DeleteFunc(item, func(_ string, v types.AttributeValue) bool {
		_, null := v.(*types.AttributeValueMemberNULL)
		return null
	})
	return item
}

// FuzzDecode: foreign items are read or refused, and what was read is written
// back as it was read.
func FuzzDecode(f *testing.F) {
	table := mustTable[everything](f)
	for _, seed := range []string{
		`{"p":"p","v":3,"at":1700000000,"i":-1,"f":1.5,"ptr":7,"any":[1,{"a":null}],"bytes":{"B":"x"},"set":{"SS":["a","b"]},"numbers":{"NS":["1","2"]},"list":[{"a":1}],"nested":{"leaves":[{"named":{"x":1}}]},"time":"2026-01-02T03:04:05Z","number":1e9,"bool":true}`,
		`{"p":1,"v":"x"}`,
		`{"p":"p","i":300,"ptr":-1,"f":1e400,"v":1.5}`,
		`{"p":"p","lockedBy":"o#1","LOCKEDBY":"x","lockedby":"y"}`,
		`{"p":"p","time":"yesterday","at":"soon","number":{"N":"NaN"}}`,
		`{"p":"p","nested":{"leaves":[{"leaves":{}},[],null],"named":null},"any":{"SS":["x"]},"set":["a"],"numbers":{"NS":["x"]}}`,
		`{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m map[string]any
		from := json.NewDecoder(bytes.NewReader(data))
		from.UseNumber() // also those that no float64 holds
		if from.Decode(&m) != nil {
			return
		}
		raw := item(m)
		got, err := table.Decode(raw)
		if err != nil {
			if !errors.Is(err, repo.ErrSchema) && (len(raw) > 0 || !errors.Is(err, repo.ErrNotFound)) {
				t.Errorf("%s: %v", data, err)
			}
			return
		}
		first, err := table.Encode(got)
		if err != nil {
			if !errors.Is(err, repo.ErrKey) && !errors.Is(err, repo.ErrSchema) {
				t.Errorf("%s, encoded again: %v", data, err)
			}
			return
		}
		if _, ok := first["lockedBy"]; ok {
			t.Errorf("%s: an attribute of the library reached the type: %v", data, first)
		}
		again, err := table.Decode(first)
		if err != nil {
			t.Fatalf("%s: written as %v, and then: %v", data, first, err)
		}
		if second, err := table.Encode(again); err != nil || !ddb.EqualItems(withoutNulls(first), withoutNulls(second)) {
			t.Errorf("%s: written as %v, then as %v: %v", data, first, second, err)
		}
	})
}
