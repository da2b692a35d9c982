package repo_test

import (
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/repo"
)

// serial encodes itself as a text, as ids of other packages do.
type serial [2]byte

func (s serial) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

func (s *serial) UnmarshalText(text []byte) error {
	_, err := hex.Decode(s[:], text)
	return err
}

// total does so by a method of its pointer, as big.Int does.
type total struct{ of string }

func (t *total) MarshalText() ([]byte, error) { return []byte(t.of), nil }

func (t *total) UnmarshalText(text []byte) error {
	t.of = string(text)
	return nil
}

// device has the tags of another mapper.
type device struct {
	ID    serial    `dynamo:"id,hash" repo:"pk,prefix=DEVICE#"`
	Kind  string    `dynamo:"kind" repo:"type=device"`
	Seen  time.Time `dynamo:"seen"`
	Name  string    `dynamo:"name,omitempty"`
	Own   int       `dynamodbav:"own"`
	Both  int       `dynamodbav:"no" dynamo:"both"`
	Not   int       `dynamo:"-"`
	Made  time.Time `dynamo:"made" repo:"created"`
	Count int64     `dynamo:"version" repo:"version"`
	Tags  []string  `dynamo:"tags,set" dynamodbav:"tags,stringset,omitempty"`
	Chain *chain    `dynamo:"chain,omitempty"`
	Total total     `dynamo:"total"`
}

type chain struct {
	Next *chain `dynamo:"next,omitempty"`
}

// mapped is the configuration of tables of devices.
func mapped() repo.TableConfig {
	return repo.TableConfig{
		EncoderOptions: func(o *attributevalue.EncoderOptions) {
			o.TagKey, o.UseEncodingMarshalers = "dynamo", true
		},
		DecoderOptions: func(o *attributevalue.DecoderOptions) {
			o.TagKey, o.UseEncodingUnmarshalers = "dynamo", true
		},
	}
}

func TestItemsAreCodedWithTheOptionsGiven(t *testing.T) {
	table, err := repo.NewTable[device](dynamodb.New(dynamodb.Options{Region: "x"}), "devices", mapped())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
	item := device{ID: serial{0xab, 1}, Kind: "device", Seen: at, Own: 2, Both: 3, Made: at, Total: total{"12"}}
	want := map[string]types.AttributeValue{
		"id": text("DEVICE#ab01"), "kind": text("device"), "seen": text("2026-01-02T03:04:05Z"), "own": number("2"), "both": number("3"),
		"made": text("2026-01-02T03:04:05Z"), "version": number("0"), "total": text("12"),
	}
	raw, err := table.Encode(item)
	if err != nil || !reflect.DeepEqual(raw, want) {
		t.Errorf("encoded %v, %v", raw, err)
	}
	if back, err := table.Decode(want); err != nil || !reflect.DeepEqual(back, item) {
		t.Errorf("decoded %+v, %v", back, err)
	}
	key, err := table.EncodeKey(repo.Key{Partition: serial{0xab, 1}})
	if err != nil || !reflect.DeepEqual(key, map[string]types.AttributeValue{"id": text("DEVICE#ab01")}) {
		t.Errorf("the key is %v, %v", key, err)
	}
	if got := table.DecodeKey(key); got.Partition != "ab01" {
		t.Errorf("the key is shown as %v", got)
	}
}

func TestTimesHaveTheFormOfTheOptions(t *testing.T) {
	type event struct {
		ID string    `dynamodbav:"id" repo:"pk"`
		At time.Time `dynamodbav:"at"`
	}
	table, err := repo.NewTable[event](dynamodb.New(dynamodb.Options{Region: "x"}), "events", repo.TableConfig{
		EncoderOptions: func(o *attributevalue.EncoderOptions) {
			o.EncodeTime = func(at time.Time) (types.AttributeValue, error) {
				return &types.AttributeValueMemberS{Value: at.UTC().Format(time.DateTime)}, nil
			}
		},
		DecoderOptions: func(o *attributevalue.DecoderOptions) {
			o.DecodeTime.S = func(s string) (time.Time, error) { return time.Parse(time.DateTime, s) }
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	item := event{ID: "a", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	raw, err := table.Encode(item)
	if at, ok := raw["at"].(*types.AttributeValueMemberS); err != nil || !ok || at.Value != "2026-01-02 03:04:05" {
		t.Errorf("encoded %v, %v", raw, err)
	}
	if back, err := table.Decode(raw); err != nil || back != item {
		t.Errorf("decoded %+v, %v", back, err)
	}
}

// A time for which RFC 3339 has no text made an item that nobody could read, or came back as
// another time.
func TestTimesThatHaveNoText(t *testing.T) {
	type event struct {
		ID   string      `dynamodbav:"id" repo:"pk"`
		At   time.Time   `dynamodbav:"at"`
		More []time.Time `dynamodbav:"more"`
	}
	for name, cfg := range map[string]repo.TableConfig{
		"as usual":     {},
		"with options": {EncoderOptions: func(o *attributevalue.EncoderOptions) { o.NullEmptySets = false }},
	} {
		table, err := repo.NewTable[event](dynamodb.New(dynamodb.Options{Region: "x"}), "events", cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, year := range []int{-1, 10000, 292_277_026_596} {
			at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			for _, item := range []event{{ID: "a", At: at}, {ID: "a", More: []time.Time{at}}} {
				if _, err := table.Encode(item); !errors.Is(err, repo.ErrSchema) || !strings.Contains(err.Error(), "0 to 9999") {
					t.Errorf("%s, %d: %v", name, year, err)
				}
			}
		}
		for _, offset := range []int{0, 1172, -17762, 3600, 100 * 3600, -24 * 3600} {
			at := time.Date(1880, 1, 1, 12, 0, 0, 5, time.FixedZone("", offset))
			raw, err := table.Encode(event{ID: "a", At: at, More: []time.Time{at}})
			if err != nil {
				t.Fatal(err)
			}
			if back, err := table.Decode(raw); err != nil || !back.At.Equal(at) || !back.More[0].Equal(at) {
				t.Errorf("%s, offset %d: %v, %v, was %v", name, offset, back, err, at)
			}
		}
	}
}

func TestOptionsThatDoNotFitAreRefused(t *testing.T) {
	text := func(cfg repo.TableConfig) error { return define[keyed](cfg) }
	for name, err := range map[string]error{
		"one tag key":                text(repo.TableConfig{EncoderOptions: mapped().EncoderOptions}),
		"texts that are not read":    text(repo.TableConfig{EncoderOptions: func(o *attributevalue.EncoderOptions) { o.UseEncodingMarshalers = true }}),
		"texts that are not written": text(repo.TableConfig{DecoderOptions: func(o *attributevalue.DecoderOptions) { o.UseEncodingUnmarshalers = true }}),
	} {
		if !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
	for name, err := range map[string]error{
		"a version that is a text": define[struct {
			ID string  `dynamo:"id" repo:"pk"`
			V  textual `repo:"version"`
		}](mapped()),
		"a time in seconds that encodes itself as a text": define[struct {
			ID serial    `dynamo:"id" repo:"pk"`
			At time.Time `dynamodbav:"at,unixtime" repo:"created"`
		}](mapped()),
		"an event time that encodes itself as a text": define[struct {
			ID serial    `dynamo:"id" repo:"pk"`
			At time.Time `dynamodbav:"at,unixtime" repo:"eventtime"`
		}](mapped()),
		"any time in seconds that encodes itself as a text": define[struct {
			ID string     `dynamo:"id" repo:"pk"`
			At *time.Time `dynamo:"at,unixtime"`
		}](mapped()),
		"such a time inside a list": define[struct {
			ID   string `dynamo:"id" repo:"pk"`
			Seen []struct {
				At time.Time `dynamo:"at,unixtime"`
			} `dynamo:"seen"`
		}](mapped()),
		"a set that would become a list": define[struct {
			ID   string   `dynamo:"id" repo:"pk"`
			Tags []string `dynamo:"tags,set"`
		}](mapped()),
		"a set that would become a map": define[struct {
			ID   string              `dynamo:"id" repo:"pk"`
			Tags map[string]struct{} `dynamo:"tags,set" dynamodbav:"tags,stringset"`
		}](mapped()),
		"a type that encodes itself for another mapper": define[struct {
			ID     string `dynamo:"id" repo:"pk"`
			Amount secret `dynamo:"amount"`
		}](mapped()),
		"a type that is one struct of texts": define[struct {
			ID   string  `dynamo:"id" repo:"pk"`
			Kind special `repo:"type=x"`
		}](mapped()),
	} {
		if !errors.Is(err, repo.ErrSchema) {
			t.Errorf("%s: %v, want ErrSchema", name, err)
		}
	}
}

type (
	textual int64
	special string
	secret  string
)

func (secret) MarshalDynamo() (types.AttributeValue, error) { return nil, nil }

func (textual) MarshalText() ([]byte, error) { return nil, nil }
func (special) MarshalText() ([]byte, error) { return nil, nil }
