package repo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

type (
	colour string
	grams  float32
	// percent codes itself, upside down.
	percent int
)

func (c colour) String() string { return "the colour " + string(c) }

func (p *percent) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	n, ok := av.(*types.AttributeValueMemberN)
	if !ok {
		return errors.New("not a number")
	}
	_, err := fmt.Sscan(n.Value, (*int)(p))
	*p = 100 - *p
	return err
}

func (p percent) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return ddb.Integer(int64(100 - p)), nil
}

// cents codes itself by methods of its pointer, and is nothing without them.
type cents struct{ n int }

func (c *cents) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	n, ok := av.(*types.AttributeValueMemberN)
	if !ok {
		return errors.New("not a number")
	}
	_, err := fmt.Sscan(n.Value, &c.n)
	return err
}

func (c *cents) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return ddb.Integer(int64(c.n)), nil
}

// purse is a list that does the same.
type purse []string

func (p *purse) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	s, ok := av.(*types.AttributeValueMemberS)
	if !ok {
		return errors.New("not a text")
	}
	*p = strings.Split(s.Value, " ")
	return nil
}

func (p *purse) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return ddb.Text(strings.Join(*p, " ")), nil
}

// Simple is embedded: it has a field of each kind that is planned.
type Simple struct {
	Text   string   `dynamodbav:"text"`
	Truth  bool     `dynamodbav:"truth"`
	Int    int      `dynamodbav:"int"`
	Int8   int8     `dynamodbav:"int8"`
	Uint   uint     `dynamodbav:"uint"`
	Uint16 uint16   `dynamodbav:"uint16"`
	Float  float32  `dynamodbav:"float"`
	Double float64  `dynamodbav:"double"`
	Texts  []string `dynamodbav:"texts"`
	Colour colour   `dynamodbav:"colour"`
	Grams  grams    `dynamodbav:"grams"`
}

type (
	simple struct {
		P string `dynamodbav:"p" repo:"pk"`
		Simple
	}
	simpleOmitted struct {
		P      string   `dynamodbav:"p" repo:"pk"`
		Text   string   `dynamodbav:"text,omitempty"`
		Truth  bool     `dynamodbav:"truth,omitempty"`
		Int8   int8     `dynamodbav:"int8,omitempty"`
		Uint16 uint16   `dynamodbav:"uint16,omitempty"`
		Double float64  `dynamodbav:"double,omitempty"`
		Texts  []string `dynamodbav:"texts,omitempty"`
	}
	composed struct {
		P       string                 `dynamodbav:"p" repo:"pk"`
		Int     int                    `dynamodbav:"int"`
		Time    time.Time              `dynamodbav:"time"`
		Bytes   []byte                 `dynamodbav:"bytes"`
		Map     map[string]int         `dynamodbav:"map"`
		Ptr     *uint16                `dynamodbav:"ptr"`
		Inner   Simple                 `dynamodbav:"inner"`
		List    []Simple               `dynamodbav:"list"`
		Colours []colour               `dynamodbav:"colours"`
		Percent percent                `dynamodbav:"percent"`
		Number  attributevalue.Number  `dynamodbav:"number"`
		Texts   []string               // by its name
		Cents   cents                  `dynamodbav:"cents"`
		Coins   struct{ All [1]cents } `dynamodbav:"coins"`
		Purse   purse                  `dynamodbav:"purse"`
		Raw     *[]byte                `dynamodbav:"raw"`
	}
	composedOmitted struct {
		P     string         `dynamodbav:"p" repo:"pk"`
		Time  time.Time      `dynamodbav:"time,omitempty"`
		Bytes []byte         `dynamodbav:"bytes,omitempty"`
		Map   map[string]int `dynamodbav:"map,omitempty"`
		Ptr   *uint16        `dynamodbav:"ptr,omitempty"`
		Array [2]byte        `dynamodbav:"array,omitempty"`
		Empty [0]int         `dynamodbav:"empty,omitempty"`
		Inner Simple         `dynamodbav:"inner,omitempty"`
	}
)

// likeSDK demands that a table codes as attributevalue does. names are those of
// T's attributes.
func likeSDK[T any](t *testing.T, table *repo.Table[T], raw ddb.Item, names ...string) {
	t.Helper()
	mine := ddb.Item{}
	for _, name := range append(names, "p") {
		if v, ok := raw[name]; ok {
			mine[name] = v
		}
	}
	var want T
	wrong := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		return attributevalue.UnmarshalMap(mine, &want)
	}()
	got, err := table.Decode(raw)
	if (err == nil) != (wrong == nil) {
		t.Errorf("%v into %T: %v, attributevalue says %v", raw, got, err, wrong)
	}
	if wrong != nil || err != nil {
		return
	}
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmp.AllowUnexported(cents{})); d != "" {
		t.Errorf("%v into %T: (-attributevalue +got)\n%s", raw, got, d)
	}
	encodesLikeSDK(t, table, got)
}

func encodesLikeSDK[T any](t *testing.T, table *repo.Table[T], item T) {
	t.Helper()
	want, wrong := attributevalue.MarshalMap(&item)
	got, err := table.Encode(item)
	if errors.Is(err, repo.ErrKey) {
		return
	}
	if (err == nil) != (wrong == nil) || err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%+v is %v (%v), attributevalue makes it %v (%v)", item, got, err, want, wrong)
	}
}

// FuzzPlan: what is coded by plan is coded as attributevalue does.
func FuzzPlan(f *testing.F) {
	plain, omitted := mustTable[simple](f), mustTable[simpleOmitted](f)
	mixed, mixedOmitted := mustTable[composed](f), mustTable[composedOmitted](f)
	for _, seed := range []string{
		`{"p":"p","text":"t","truth":true,"int":-1,"int8":127,"uint":18446744073709551615,"uint16":7,"float":1.5,"double":-2e300,"texts":["a",""],"colour":"red","grams":0.1}`,
		`{"p":"p","text":"","truth":false,"int":0,"int8":128,"uint":-1,"double":1e400,"texts":[]}`,
		`{"p":"p","text":7,"truth":"yes","int":"7","int8":1.5,"uint16":65536,"float":1e39,"texts":["a",1],"colour":null}`,
		`{"p":"p","texts":{"SS":["a"]},"text":{"B":"x"},"double":{"N":"NaN"},"float":{"N":"-0"},"int":{"NS":["1"]}}`,
		`{"p":"p","texts":"a","text":["a"],"truth":{"a":1},"int":null,"TEXT":"x","Truth":true}`,
		`{"p":"p","int":3,"time":"2026-01-02T03:04:05Z","bytes":{"B":"x"},"map":{"a":1},"ptr":7,"inner":{"text":"t"},"list":[{"int":1},{}],"colours":["red"],"percent":30,"number":"x","Texts":["a"],"cents":5,"coins":{"All":[7]},"purse":"a b"}`,
		`{"p":"p","array":{"B":"ab"},"empty":[],"bytes":{"B":""}}`,
		`{"p":"p","array":{"B":"abc"}}`,
		`{"p":"p","int":3,"time":"yesterday","map":null,"ptr":null,"inner":{"TEXT":"t"},"list":null,"colours":[1],"percent":"x","number":1e3,"texts":["a"]}`,
		`{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m map[string]any
		from := json.NewDecoder(bytes.NewReader(data))
		from.UseNumber()
		if from.Decode(&m) != nil || len(m) == 0 { // which is no item
			return
		}
		raw := item(m)
		likeSDK(t, plain, raw, "text", "truth", "int", "int8", "uint", "uint16", "float", "double", "texts", "colour", "grams")
		likeSDK(t, omitted, raw, "text", "truth", "int8", "uint16", "double", "texts")
		likeSDK(t, mixed, raw, "int", "time", "bytes", "map", "ptr", "inner", "list", "colours", "percent", "number", "Texts", "cents", "coins", "purse")
		likeSDK(t, mixedOmitted, raw, "time", "bytes", "map", "ptr", "array", "empty", "inner")
	})
}

// Values that no item decodes to.
func TestPlanOfOddValues(t *testing.T) {
	plain, omitted := mustTable[simple](t), mustTable[simpleOmitted](t)
	mixed, mixedOmitted := mustTable[composed](t), mustTable[composedOmitted](t)
	for _, s := range []Simple{
		{},
		{Float: float32(math.Inf(1)), Double: math.NaN(), Texts: []string{}},
		{Double: math.Copysign(0, -1), Texts: []string{"", "\xff"}, Text: strings.Repeat("x", 3)},
		{Int: math.MinInt, Int8: math.MinInt8, Uint: math.MaxUint, Float: math.MaxFloat32, Double: math.SmallestNonzeroFloat64},
	} {
		encodesLikeSDK(t, plain, simple{"p", s})
		encodesLikeSDK(t, omitted, simpleOmitted{"p", s.Text, s.Truth, s.Int8, s.Uint16, s.Double, s.Texts})
		zero := uint16(0)
		for _, ptr := range []*uint16{nil, &zero} {
			for _, list := range [][]Simple{nil, {}, {s}} {
				encodesLikeSDK(t, mixed, composed{P: "p", Raw: new([]byte), Ptr: ptr, Inner: s, List: list, Bytes: []byte{}, Map: map[string]int{}, Percent: 7})
				encodesLikeSDK(t, mixedOmitted, composedOmitted{P: "p", Ptr: ptr, Inner: s, Bytes: []byte{}, Map: map[string]int{}})
			}
		}
	}
	encodesLikeSDK(t, mixed, composed{P: "p", Map: map[string]int{"": 1}}) // refused
}
