package repo_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/repo"
)

func TestParseImage(t *testing.T) {
	got, err := repo.ParseImage([]byte(`{"s":{"S":""},"n":{"N":"7"},"b":{"B":"AQI="},"yes":{"BOOL":true},"none":{"NULL":true},
		"ss":{"SS":["a","b"]},"ns":{"NS":["1"]},"bs":{"BS":["AQ=="]},"l":{"L":[{"S":"x"},{"L":[]}]},"m":{"M":{"k":{"BOOL":false}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]types.AttributeValue{
		"s": &types.AttributeValueMemberS{}, "n": &types.AttributeValueMemberN{Value: "7"}, "b": &types.AttributeValueMemberB{Value: []byte{1, 2}},
		"yes": &types.AttributeValueMemberBOOL{Value: true}, "none": &types.AttributeValueMemberNULL{Value: true},
		"ss": &types.AttributeValueMemberSS{Value: []string{"a", "b"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1"}}, "bs": &types.AttributeValueMemberBS{Value: [][]byte{{1}}},
		"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "x"}, &types.AttributeValueMemberL{Value: []types.AttributeValue{}}}},
		"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"k": &types.AttributeValueMemberBOOL{}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if none, err := repo.ParseImage([]byte("null")); none != nil || err != nil {
		t.Errorf("no image: %v, %v", none, err)
	}
	for _, bad := range []string{"", "7", `{"a":1}`, `{"a":{}}`, `{"a":{"L":[{}]}}`, `{"a":{"M":{"b":{"X":1}}}}`, `{"a":{"B":"!"}}`} {
		if _, err := repo.ParseImage([]byte(bad)); !errors.Is(err, repo.ErrSchema) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// What an image says in another form is no change.
func TestImagesThatSayTheSame(t *testing.T) {
	table := mustTable[struct {
		ID    string   `dynamodbav:"id" repo:"pk"`
		Tags  []string `dynamodbav:"tags,stringset"`
		Price float64  `dynamodbav:"price"`
	}](t)
	image := func(price string, tags ...string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a"}, "price": &types.AttributeValueMemberN{Value: price},
			"tags": &types.AttributeValueMemberSS{Value: tags}, "writers": &types.AttributeValueMemberB{Value: []byte(price + tags[0])[:8]}}
	}
	before := image("1.50000", "new", "red")
	for name, c := range map[string]struct {
		after   map[string]types.AttributeValue
		changed bool
	}{
		"another order, another form": {image("1.5000000", "red", "new"), false},
		"another price":               {image("1.6000000", "red", "new"), true},
		"another tag":                 {image("1.5000000", "red", "old"), true},
	} {
		if was, is, changed, err := table.Images(before, c.after); err != nil || was == nil || is == nil || changed != c.changed {
			t.Errorf("%s: %v, %v, changed %v, %v", name, was, is, changed, err)
		}
	}
}
