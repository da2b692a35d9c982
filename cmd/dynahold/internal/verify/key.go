package verify

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Of is a change of the item with a key, of which the rest is not known yet.
func Of(keys map[string]types.AttributeValue) Change {
	return Change{Key: keyOf(keys), Name: nameOf(keys)}
}

// keyOf is a text that is the same for the same key, and for no other: a number is the
// same in other digits.
func keyOf(keys map[string]types.AttributeValue) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, "%q=", name)
		switch v := keys[name].(type) {
		case *types.AttributeValueMemberS:
			b.WriteString(strconv.Quote(v.Value))
		case *types.AttributeValueMemberB:
			b.WriteString(base64.StdEncoding.EncodeToString(v.Value))
		case *types.AttributeValueMemberN:
			if r, is := new(big.Rat).SetString(v.Value); is {
				b.WriteString(r.RatString())
			}
		}
		b.WriteByte(' ')
	}
	return b.String()
}

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
