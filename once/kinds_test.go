package once_test

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Types of results, of all kinds.
type (
	// coded keeps what it has in its own encoding.
	coded struct{ text string }
	// drops encodes itself, and decodes to nothing.
	drops struct{ text string }
	// half encodes itself without a part of it.
	half struct{ Text, Part string }
	// oneWay encodes itself, and has no way back.
	oneWay struct{ Text string }
	// sealed has no exported fields.
	sealed struct{ number int } //nolint:unused // what it is for
	// helped has a helper that its results go without.
	helped struct {
		Number int
		cached string `dynamodbav:"-"` //nolint:unused // what it is for
	}
	helper struct {
		Number int
		cached string //nolint:unused // what it is for
	}
	base struct{ Number int }
	// shadowed has two fields of one name.
	shadowed struct {
		base
		Number int
	}
	embeds   struct{ base }
	embedsIt struct{ *base }
	stamped  struct{ time.Time }
	seconds  struct {
		At time.Time `dynamodbav:",unixtime"`
	}
	jsonOnly struct {
		Number int    `json:"n"`
		Text   string `json:"-"`
	}
	sets struct {
		Texts   []string `dynamodbav:",stringset"`
		Numbers []int    `dynamodbav:",numberset"`
		Bytes   [][]byte `dynamodbav:",binaryset"`
	}
	tagged struct {
		Number int                `dynamodbav:"n,string"`
		Part   float64            `dynamodbav:",string,omitempty"`
		At     *time.Time         `dynamodbav:",unixtime,omitempty"`
		Some   *int               `dynamodbav:",omitempty"`
		Text   string             `dynamodbav:",nullempty"`
		Named  map[string]*tagged `dynamodbav:",omitempty"`
		Listed []tagged
		Any    any
		Runes  []rune
		Bytes  [3]byte
		Bools  map[bool]string
		base
	}
	node struct {
		Next *node
		Up   *node `dynamodbav:"-"`
	}
	// raw is whatever encoding it has.
	raw struct{ av types.AttributeValue }
	// cased is kept in capitals.
	cased string
)

func (c coded) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return &types.AttributeValueMemberS{Value: c.text}, nil
}

func (c *coded) UnmarshalDynamoDBAttributeValue(v types.AttributeValue) error {
	c.text = v.(*types.AttributeValueMemberS).Value
	return nil
}

func (d drops) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return &types.AttributeValueMemberS{Value: d.text}, nil
}

func (d *drops) UnmarshalDynamoDBAttributeValue(types.AttributeValue) error { return nil }

func (h half) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return &types.AttributeValueMemberS{Value: h.Text}, nil
}

func (h *half) UnmarshalDynamoDBAttributeValue(v types.AttributeValue) error {
	h.Text = v.(*types.AttributeValueMemberS).Value
	return nil
}

func (o oneWay) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return &types.AttributeValueMemberS{Value: o.Text}, nil
}

func (r raw) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) { return r.av, nil }

func (r *raw) UnmarshalDynamoDBAttributeValue(v types.AttributeValue) error {
	r.av = v
	return nil
}

func (c cased) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return &types.AttributeValueMemberS{Value: strings.ToUpper(string(c))}, nil
}

func (c *cased) UnmarshalDynamoDBAttributeValue(v types.AttributeValue) error {
	*c = cased(v.(*types.AttributeValueMemberS).Value)
	return nil
}
