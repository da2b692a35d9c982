package once_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
)

// outcome is what came of three calls with one id: by the first process, by another, and
// where the answers of the completion are lost.
type outcome struct {
	runs int
	got  any
	errs []error
}

// trial is a result whose fate is the same for all.
type trial struct {
	do   func(t *testing.T, s *store, id string, lose bool) outcome
	want []error // nil: it is kept
	ran  bool
}

// giveTo makes the calls.
func giveTo[T any](result T) func(*testing.T, *store, string, bool) outcome {
	return func(t *testing.T, s *store, id string, lose bool) (o outcome) {
		cut := s.Peer()
		stores := []*once.Store{s.open(t, cut.Client, once.Config{}), s.Store, s.Store}
		for i, store := range stores {
			got, err := once.Do(t.Context(), store, id, func(context.Context, once.Run) (T, error) {
				o.runs++
				if lose {
					cut.Nth("UpdateItem", 0, fault.LoseResponse)
				}
				return result, nil
			})
			o.errs = append(o.errs, err)
			if i > 0 && err == nil && !reflect.DeepEqual(got, o.got) {
				t.Errorf("%s: call %d gets %#v, the first one %#v", id, i, got, o.got)
			}
			o.got = got
		}
		return o
	}
}

func kept[T any](result T) trial { return trial{do: giveTo(result), ran: true} }

func notKept[T any](result T, want error) trial {
	return trial{do: giveTo(result), ran: true, want: []error{once.ErrNoResult, want}}
}

func refusedType[T any]() trial {
	var zero T
	return trial{do: giveTo(zero), want: []error{repo.ErrSchema}}
}

func chain(n int) *node {
	if n == 0 {
		return nil
	}
	return &node{Next: chain(n - 1)}
}

func ring() *node {
	n := &node{}
	n.Next = n
	return n
}

func nested(levels int) (v any) {
	v = "end"
	for range levels {
		v = []any{v}
	}
	return v
}

func inItself() []any {
	v := []any{nil, "more"}
	v[0] = v
	return v
}

func own(v types.AttributeValue) trial { return notKept(raw{v}, repo.ErrSchema) }

func num(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// What may be given: kept, and equal for all; or run once and never again, with the same
// errors for all; or refused before anything is sent.
var trials = map[string]trial{
	"text": kept("text"), "no text": kept(""), "number": kept(7), "bool": kept(true), "bytes": kept([]byte("bytes")), "no bytes": kept([]byte{}), "nil bytes": kept([]byte(nil)),
	"float": kept(0.1), "least": kept(1e-130), "greatest": kept(9.99e125), "minus zero": kept(math.Copysign(0, -1)), "most of int": kept(int64(math.MinInt64)), "most of uint": kept(uint64(math.MaxUint64)),
	"struct": kept(receipt{1, "x"}), "nothing": kept(struct{}{}), "pointer": kept(&receipt{1, "x"}), "nil pointer": kept((*receipt)(nil)), "array": kept([2]int{1, 2}), "uuid": kept([16]byte{1, 2}),
	"slice": kept([]receipt{{1, "x"}}), "nil slice": kept([]int(nil)), "empty slice": kept([]int{}), "map": kept(map[string]int{"a": 1}), "nil map": kept(map[string]int(nil)), "keys": kept(map[int64]bool{-1: true}),
	"time": kept(time.Now()), "no time": kept(time.Time{}), "zoned": kept(time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600))), "seconds": kept(seconds{time.Now()}), "duration": kept(time.Hour),
	"json": kept(map[string]any{"a": "x", "n": 1.5, "l": []any{true, nil}, "m": map[string]any{}}), "nil any": kept[any](nil), "embedded": kept(embeds{base{1}}),
	"json tags": kept(jsonOnly{1, "x"}), "without its helper": kept(helped{Number: 1}), "encodes itself": kept(coded{"x"}), "in a slice": kept([]*coded{{"x"}, nil}), "in a map": kept(map[string]coded{"a": {"x"}}),
	"sets": kept(sets{[]string{"b", "a"}, []int{10, 9}, [][]byte{{2}, {1}}}), "no sets": kept(sets{}), "empty sets": kept(sets{[]string{}, []int{}, [][]byte{}}), "chain": kept(chain(31)), "numeral": kept(attributevalue.Number("1.50")),
	"31 levels": kept(nested(31)), "38 digits": kept(attributevalue.Number(strings.Repeat("9", 38))), "normal form": kept(cased("UP")), "UnixTime": kept(attributevalue.UnixTime(time.Now().Truncate(time.Second))),
	"tags": kept(tagged{Number: 1, Part: 0.5, At: pointerTo(time.Now()), Some: pointerTo(0), Text: "x", Named: map[string]*tagged{"a": nil, "b": {Number: 2}}, Listed: []tagged{{}},
		Any: map[string]any{"a": []any{1.5, "x", []byte("y"), nil, false}}, Runes: []rune("hé"), Bytes: [3]byte{1}, Bools: map[bool]string{true: "x"}, base: base{7}}), "no tagged": kept(tagged{}),
	"pointers to pointers": kept(pointerTo(pointerTo(7))), "numbers": kept([]float32{0.1, 3e38}), "seconds in a zone of seconds": kept(seconds{time.Unix(7, 0).In(time.FixedZone("LMT", -17762))}), "blank": kept(struct{ _, N int }{N: 1}),
	"whole half": kept(&half{Text: "x"}),

	"NaN": notKept(math.NaN(), repo.ErrSchema), "infinite": notKept(math.Inf(1), repo.ErrSchema), "too great": notKept(1e200, repo.ErrSchema), "1e126": notKept(1e126, repo.ErrSchema), "too small": notKept(math.SmallestNonzeroFloat64, repo.ErrSchema), "1e-131": notKept(1e-131, repo.ErrSchema),
	"deep within": notKept(map[string][]float64{"a": {1, math.NaN()}}, repo.ErrSchema), "39 digits": notKept(attributevalue.Number(strings.Repeat("9", 39)), repo.ErrSchema), "no number": notKept(attributevalue.Number("seven"), repo.ErrSchema),
	"32 levels and a text": notKept(nested(32), repo.ErrSchema), "33 levels": notKept(nested(33), repo.ErrSchema), "long chain": notKept(chain(40), repo.ErrSchema), "ring": notKept(ring(), repo.ErrSchema), "400 KB": notKept(strings.Repeat("x", 400<<10), repo.ErrTooLarge),
	"not UTF-8": notKept("\xff", repo.ErrSchema), "key not UTF-8": notKept(map[string]int{"\xff": 1}, repo.ErrSchema), "empty key": notKept(map[string]int{"": 1}, repo.ErrSchema), "twice in a set": notKept(sets{Texts: []string{"a", "a"}}, repo.ErrSchema),
	"empty set": own(&types.AttributeValueMemberSS{}), "numbers alike": own(&types.AttributeValueMemberNS{Value: []string{"1", "1.0"}}), "NaN in a set": own(&types.AttributeValueMemberNS{Value: []string{"NaN"}}), "empty BS": own(&types.AttributeValueMemberBS{}),
	"false NULL": own(&types.AttributeValueMemberNULL{}), "nil in a list": own(&types.AttributeValueMemberL{Value: []types.AttributeValue{nil}}), "no numeral": own(num("")), "hexadecimal": own(num("0x10")), "spaced": own(num(" 1")),
	"typed nil": own((*types.AttributeValueMemberS)(nil)), "an int as any": notKept[any](7, repo.ErrSchema), "a struct as any": notKept(map[string]any{"a": receipt{1, "x"}}, repo.ErrSchema),
	"drops": notKept(drops{"x"}, repo.ErrSchema), "one way": notKept(oneWay{"x"}, repo.ErrSchema), "seconds of a zone": notKept(time.Date(1880, 1, 1, 0, 0, 0, 0, time.FixedZone("LMT", -17762)), repo.ErrSchema), "year 10000": notKept(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), repo.ErrSchema),
	"drops a part": notKept(half{"x", "y"}, repo.ErrSchema), "leads to what drops a part": notKept([]*half{{"x", "y"}}, repo.ErrSchema), "NULL as any": notKept[any](raw{&types.AttributeValueMemberNULL{Value: true}}, repo.ErrSchema),
	"within itself": notKept(inItself(), repo.ErrSchema), "key not a number": notKept(map[float64][]int{math.NaN(): {1}}, repo.ErrSchema),

	"encodes itself, whatever it is": refusedType[interface {
		attributevalue.Marshaler
		attributevalue.Unmarshaler
	}](),
	"sealed": refusedType[sealed](), "pointer to sealed": refusedType[*sealed](), "slice of sealed": refusedType[[]sealed](), "map of sealed": refusedType[map[string]sealed](), "helper": refusedType[helper](), "embedded pointer": refusedType[embedsIt](),
	"error": refusedType[error](), "with an error": refusedType[struct{ Err error }](), "chan": refusedType[chan int](), "func": refusedType[struct{ F func() }](), "complex": refusedType[complex128](), "uintptr": refusedType[uintptr](), "unsafe": refusedType[unsafe.Pointer](),
	"keys by struct": refusedType[map[base]int](), "two of a name": refusedType[shadowed](), "embedded time": refusedType[stamped](), "set unasked": refusedType[[][]byte](), "same attribute": refusedType[struct {
		A int `dynamodbav:"x"`
		B int `dynamodbav:"x"`
	}](),
}

// Each result, and what all callers are told of it; with the first answer of the
// completion lost, too. Whatever is told, the operation has run once, if it has run.
func TestWhatResultsBecome(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for name, c := range trials {
		for _, lose := range []bool{false, true} {
			id := fmt.Sprintf("%s, lost: %v", name, lose)
			s.Count.Reset()
			o := c.do(t, s, id, lose)
			if want := map[bool]int{false: 0, true: 1}[c.ran]; o.runs != want && (c.ran || o.runs != 0) {
				t.Errorf("%s: %d runs", id, o.runs)
			}
			if !c.ran && s.Count.Total() > 0 {
				t.Errorf("%s: %d requests", id, s.Count.Total())
			}
			for i, err := range o.errs {
				if len(c.want) == 0 && err != nil {
					t.Errorf("%s: call %d: %v", id, i, err)
				}
				for _, want := range c.want {
					if !errors.Is(err, want) {
						t.Errorf("%s: call %d: %v, want %v", id, i, err, want)
					}
				}
			}
			if verdict := repo.VerdictOf(o.errs[0]); (verdict == repo.Written) != c.ran {
				t.Errorf("%s: %v", id, verdict)
			}
		}
	}
}

// DynamoDB has the last word: what it refuses all the same is completed without a result.
func TestWhatDynamoDBRefuses(t *testing.T) {
	s := newStore(t)
	for _, lose := range []bool{false, true} {
		id := fmt.Sprint("order", lose)
		cut := s.Peer()
		mine := s.open(t, cut.Client, once.Config{})
		s.Count.Reset()
		_, err := once.Do(t.Context(), mine, id, func(context.Context, once.Run) (string, error) {
			rig.Must(s.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.Table, Key: rawKey(id), UpdateExpression: aws.String("SET strange = :v"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberB{Value: make([]byte, 8<<10)}}}))(t)
			if lose {
				cut.Nth("UpdateItem", 0, fault.LoseResponse)
			}
			return strings.Repeat("x", 396<<10), nil
		})
		rig.Is(t, err, once.ErrNoResult, repo.ErrTooLarge)
		for range 2 {
			_, err = once.Do(t.Context(), s.Store, id, func(context.Context, once.Run) (string, error) {
				t.Error("it runs again")
				return "", nil
			})
			rig.Is(t, err, once.ErrNoResult, repo.ErrTooLarge)
		}
	}
}

// The table's options code results, and only those: here times are numbers, and fields have
// the names of another mapper.
func TestTheOptionsOfTheTable(t *testing.T) {
	s := newStore(t)
	calls := 0
	mine := s.open(t, s.Client, once.Config{Table: repo.TableConfig{
		EncoderOptions: func(o *attributevalue.EncoderOptions) {
			calls++
			o.TagKey, o.UseEncodingMarshalers = "json", true
			o.EncodeTime = func(at time.Time) (types.AttributeValue, error) { return num(fmt.Sprint(at.Unix())), nil }
		},
		DecoderOptions: func(o *attributevalue.DecoderOptions) {
			calls++
			o.TagKey, o.UseEncodingUnmarshalers = "json", true
		},
	}})
	type result struct {
		Number int        `json:"n"`
		Helper string     `json:"-"`
		Addr   netip.Addr `json:"addr"`
		cached int        `json:"-"` //nolint:unused // what it is for
	}
	want := result{Number: 1, Addr: netip.MustParseAddr("10.0.0.1")}
	for range 2 {
		got, err := once.Do(t.Context(), mine, "order", func(context.Context, once.Run) (result, error) { return want, nil })
		rig.Is(t, err)
		if got != want {
			t.Errorf("%+v", got)
		}
	}
	m, _ := s.Item(t, rawKey("order"))["result"].(*types.AttributeValueMemberM)
	if m == nil || len(m.Value) != 2 || m.Value["n"] == nil || m.Value["addr"] == nil || calls != 2 {
		t.Errorf("%v after %d calls of options", m, calls)
	}
	_, err := once.Do(t.Context(), s.Store, "another", func(context.Context, once.Run) (result, error) { return want, nil })
	rig.Is(t, err, repo.ErrSchema) // netip.Addr does not encode itself here
}

// A result that is asked for as another type is not given as a zero of it.
func TestAnotherType(t *testing.T) {
	s := newStore(t)
	rig.Must(once.Do(t.Context(), s.Store, "nil", func(context.Context, once.Run) (*int, error) { return nil, nil }))(t)
	_, err := once.Do(t.Context(), s.Store, "nil", func(context.Context, once.Run) (int, error) { return 1, nil })
	rig.Is(t, err, once.ErrNoResult, repo.ErrSchema)
	rig.Must(once.Do(t.Context(), s.Store, "number", func(context.Context, once.Run) (int, error) { return 7, nil }))(t)
	_, err = once.Do(t.Context(), s.Store, "number", func(context.Context, once.Run) (string, error) { return "", nil })
	rig.Is(t, err, once.ErrNoResult, repo.ErrSchema)
	if repo.VerdictOf(err) != repo.Written {
		t.Error("the operation was made")
	}
}

func pointerTo[T any](v T) *T { return &v }
