package repo

import (
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type selfCoded struct{ ID string }

func (*selfCoded) UnmarshalDynamoDBAttributeValue(types.AttributeValue) error { return nil }

// What attributevalue treats in a way of its own must not be planned.
func TestTypesThatArePlanned(t *testing.T) {
	type Base struct{ Text string }
	for name, c := range map[string]struct {
		typ     reflect.Type
		planned bool
	}{
		"scalars, lists of texts": {reflect.TypeFor[struct {
			ID    string
			N     int8 `dynamodbav:"n,omitempty"`
			Texts []string
		}](), true},
		"embedded": {reflect.TypeFor[struct {
			Base
			N float64
		}](), true},
		"values that attributevalue codes one by one": {reflect.TypeFor[struct {
			T time.Time
			M map[string]any
			P *Base
			N attributevalue.Number
			S selfCoded
			A [2]int
		}](), true},
		"options": {reflect.TypeFor[struct {
			N int `dynamodbav:",string"`
		}](), false},
		"two options": {reflect.TypeFor[struct {
			N int `dynamodbav:",omitempty,nullempty"`
		}](), false},
		"interface":                   {reflect.TypeFor[struct{ V any }](), false},
		"pointer to interface":        {reflect.TypeFor[struct{ V *any }](), false},
		"pointer to pointer":          {reflect.TypeFor[struct{ V **int }](), false},
		"embedded pointer":            {reflect.TypeFor[struct{ *Base }](), false},
		"embedded text":               {reflect.TypeFor[struct{ Embedded }](), false},
		"a type that codes itself":    {reflect.TypeFor[selfCoded](), false},
		"a type that looks like time": {reflect.TypeFor[struct{ time.Time }](), false},
	} {
		fields, err := collect(c.typ, dynamodbav, nil, false)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if p := newPlan(c.typ, fields); (p != nil) != c.planned {
			t.Errorf("%s: planned: %v", name, p != nil)
		}
	}
}

// Embedded is embedded in a definition.
type Embedded string
