package repo_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// keeper encodes itself to the very value that it keeps, and keeps what it is
// decoded from.
type keeper struct{ av types.AttributeValue }

func (k keeper) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) { return k.av, nil }
func (k *keeper) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	k.av = av
	return nil
}

// onlyEncodes is one that decodes to something else.
type onlyEncodes struct{ av types.AttributeValue }

func (o *onlyEncodes) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return o.av, nil
}

type field[F any] struct {
	ID string `dynamodbav:"id" repo:"pk"`
	F  F      `dynamodbav:"f"`
}

// What is encoded from an item, or decoded to one, is nobody else's memory:
// encodings are kept, handed on and sent again after a call has returned.
func TestEncodingsShareNothingWithItems(t *testing.T) {
	t.Run("itself", func(t *testing.T) { sharesNothing(t, func(av types.AttributeValue) keeper { return keeper{av} }) })
	t.Run("pointer", func(t *testing.T) {
		sharesNothing(t, func(av types.AttributeValue) *onlyEncodes { return &onlyEncodes{av} })
	})
	t.Run("any", func(t *testing.T) { sharesNothing(t, func(av types.AttributeValue) any { return keeper{av} }) })
	t.Run("in a map of any", func(t *testing.T) {
		sharesNothing(t, func(av types.AttributeValue) map[string]any { return map[string]any{"x": keeper{av}} })
	})
	t.Run("in a list of any", func(t *testing.T) {
		sharesNothing(t, func(av types.AttributeValue) []any { return []any{&onlyEncodes{av}} })
	})
	t.Run("in a list of structs", func(t *testing.T) {
		type inner struct{ K []keeper }
		sharesNothing(t, func(av types.AttributeValue) []inner { return []inner{{[]keeper{{av}}}} })
	})
	t.Run("bytes", func(t *testing.T) {
		b := []byte("good")
		item := field[[]byte]{"a", b}
		raw := encoded(t, item)
		was := ddb.Copy(raw)
		copy(b, "bad!")
		if !ddb.EqualItems(raw, was) {
			t.Errorf("the encoding is %v now", raw)
		}
	})
}

func encoded[T any](t *testing.T, item T) ddb.Item {
	t.Helper()
	raw, err := repo.EncodeAny(&item, dynamodb.New(dynamodb.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func sharesNothing[F any](t *testing.T, with func(types.AttributeValue) F) {
	t.Helper()
	mine := map[string]types.AttributeValue{"a": ddb.Text("good"), "b": &types.AttributeValueMemberBS{Value: [][]byte{[]byte("good")}},
		"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{ddb.Text("good")}}}
	raw := encoded(t, field[F]{"a", with(&types.AttributeValueMemberM{Value: mine})})
	was := ddb.Copy(raw)
	mine["new"] = ddb.Text("bad")
	mine["a"].(*types.AttributeValueMemberS).Value = "bad"
	copy(mine["b"].(*types.AttributeValueMemberBS).Value[0], "bad!")
	mine["l"].(*types.AttributeValueMemberL).Value[0] = ddb.Text("bad")
	if !ddb.EqualItems(raw, was) {
		t.Errorf("the encoding was %v and is %v", was["f"], raw["f"])
	}
}

// A request for a key may outlive its call, too.
func TestEncodedKeysShareNothing(t *testing.T) {
	table, err := repo.NewKeyTable(dynamodb.New(dynamodb.Options{}), "never-asked",
		repo.KeySchema{Partition: repo.KeyAttribute{Name: "pk", Type: types.ScalarAttributeTypeB}}, repo.TableConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]func(b []byte) any{
		"bytes":  func(b []byte) any { return b },
		"itself": func(b []byte) any { return keeper{&types.AttributeValueMemberB{Value: b}} },
	} {
		b := []byte("good")
		raw, err := table.EncodeKey(repo.Key{Partition: key(b)})
		if err != nil {
			t.Fatal(err)
		}
		copy(b, "bad!")
		if got := string(raw["pk"].(*types.AttributeValueMemberB).Value); got != "good" {
			t.Errorf("%s: the key is %q now", name, got)
		}
	}
}

// A key part that encodes itself by a method of its pointer is one key, given by itself
// and in an item.
func TestKeysThatEncodeThemselvesByAPointer(t *testing.T) {
	table := mustTable[struct {
		ID cents `dynamodbav:"id" repo:"pk"`
	}](t)
	raw, err := table.EncodeKey(repo.Key{Partition: cents{5}})
	if n, ok := raw["id"].(*types.AttributeValueMemberN); err != nil || !ok || n.Value != "5" {
		t.Errorf("the key is %v, %v", raw, err)
	}
	item, err := table.Decode(raw)
	if err != nil || item.ID.n != 5 {
		t.Errorf("decoded %+v, %v", item, err)
	}
	if again, err := table.Encode(item); err != nil || !ddb.EqualItems(again, raw) {
		t.Errorf("encoded %v, %v", again, err)
	}
	if err := define[struct {
		ID string  `dynamodbav:"id" repo:"pk"`
		V  upwards `dynamodbav:"v" repo:"version"`
	}](repo.TableConfig{}); !errors.Is(err, repo.ErrSchema) {
		t.Errorf("a version that encodes itself: %v", err)
	}
}

// upwards is an integer that encodes itself by a method of its pointer.
type upwards int64

func (u *upwards) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return ddb.Integer(-int64(*u)), nil
}
