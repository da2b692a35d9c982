package repo

import (
	"reflect"
	"strings"
	"testing"
)

// Tags that go vet would refuse in source text come through reflection.
func TestTagThatCannotBeParsed(t *testing.T) {
	for _, tag := range []reflect.StructTag{"repo=version", "repo:version", `dynamodbav:id`} {
		typ := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int](), Tag: tag}})
		if _, err := collect(typ, dynamodbav, nil, false); err == nil || !strings.Contains(err.Error(), "cannot be parsed") {
			t.Errorf("%s: %v", tag, err)
		}
	}
}
