package verify

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/history"
	"github.com/dynahold/dynahold/internal/stored"
)

// Of is a change of the item with a key, of which the rest is not known yet.
func Of(keys map[string]types.AttributeValue) Change {
	return Change{Key: history.KeyHash(keys), Name: nameOf(keys), Keys: keys}
}

// KeyNames are the attributes of the key, as the library's own rows in the table tell them
// apart. Without such rows there is nothing for which they are needed.
func KeyNames(changes []Change) (partition, sort string) {
	for _, c := range changes {
		for name, v := range c.Keys {
			if stored.IsRowKey(v) {
				for other := range c.Keys {
					if other != name {
						sort = other
					}
				}
				return name, sort
			}
		}
	}
	return noName, ""
}

// noName stands for one that nobody knows.
const noName = "-"

// nameOf is a key as a line of text has it.
func nameOf(keys map[string]types.AttributeValue) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		switch v := keys[name].(type) {
		case *types.AttributeValueMemberS:
			parts = append(parts, name+"="+strconv.Quote(v.Value))
		case *types.AttributeValueMemberN:
			parts = append(parts, name+"="+v.Value)
		case *types.AttributeValueMemberB:
			parts = append(parts, name+"="+base64.StdEncoding.EncodeToString(v.Value))
		}
	}
	return strings.Join(parts, " ")
}
