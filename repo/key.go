package repo

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/internal/stored"
)

// Key is the primary key of an item. Each part is a string, []byte or a
// number, as the table has it, but without the prefix that its field's role may
// name; Sort is nil where the table has no sort key. Equal numbers are one key, however
// they are written.
type Key struct{ Partition, Sort any }

func (k Key) String() string {
	if k.Sort == nil {
		return fmt.Sprintf("{%v}", part(k.Partition))
	}
	return fmt.Sprintf("{%v %v}", part(k.Partition), part(k.Sort))
}

func part(v any) any {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case []byte:
		return fmt.Sprintf("%x", v)
	}
	return v
}

// DynamoDB's limits for key values, in bytes.
const (
	maxPartition = 2048
	maxSort      = 1024
)

func (c *codec) encodePart(which string, v any, f field, limit int) (types.AttributeValue, error) {
	if v == nil {
		return nil, fmt.Errorf("%w: the %s key (attribute %q) is nil", ErrKey, which, f.name)
	}
	av, err := c.encodeScalar(v)
	if err != nil {
		return nil, fmt.Errorf("%w: the %s key (attribute %q): %w", ErrKey, which, f.name, redact.Encoding(err))
	}
	av = f.stored(av)
	return av, checkPart(which, av, f, limit)
}

// stored is a bare key part as the table has it: with its prefix, if it has one. An
// empty one stays empty, and is refused.
func (f field) stored(av types.AttributeValue) types.AttributeValue {
	if s, ok := av.(*types.AttributeValueMemberS); ok && f.role.prefix != "" && s.Value != "" {
		return ddb.Text(f.role.prefix + s.Value)
	}
	return av
}

// bare is a key part without its prefix; as it is where it does not have it.
func (f field) bare(part any) any {
	if s, ok := part.(string); ok {
		return strings.TrimPrefix(s, f.role.prefix)
	}
	return part
}

func (c *codec) encodeScalar(v any) (types.AttributeValue, error) {
	switch v := v.(type) {
	case string:
		return ddb.Text(v), nil
	case []byte:
		return ddb.Bytes(bytes.Clone(v)), nil // the request may outlive the call
	case int:
		return ddb.Number(strconv.Itoa(v)), nil
	case int64:
		return ddb.Number(strconv.FormatInt(v, 10)), nil
	}
	av, err := encodeValue(c.encoder, reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	return ddb.CopyValue(av), nil // a type that encodes itself may keep what it returns
}

// checkPart verifies type and length of a key attribute.
func checkPart(which string, av types.AttributeValue, f field, limit int) error {
	size := 1
	number, isNumber := av.(*types.AttributeValueMemberN)
	text, isText := av.(*types.AttributeValueMemberS)
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		size = len(v.Value)
	case *types.AttributeValueMemberB:
		size = len(v.Value)
	}
	switch {
	case isText && !utf8.ValidString(text.Value):
		return fmt.Errorf("%w: the %s key (attribute %q) is not valid UTF-8, which is all that DynamoDB keeps in strings: use bytes", ErrKey, which, f.name)
	case isNumber && !ddb.Kept(number.Value):
		return fmt.Errorf("%w: the %s key (attribute %q): %s is not a number that DynamoDB keeps (at most 38 digits, from 10^-130 to below 10^126)", ErrKey, which, f.name, number.Value)
	case ddb.TypeName(av) != f.kind:
		return fmt.Errorf("%w: the %s key (attribute %q) must be %s, got %s", ErrKey, which, f.name, kindName(f.kind), kindName(ddb.TypeName(av)))
	case which == "partition" && stored.IsRowKey(av):
		return fmt.Errorf("%w: the %s key (attribute %q) begins with %q, which the library keeps for its own rows", ErrKey, which, f.name, stored.RowPrefix)
	case size == 0:
		return fmt.Errorf("%w: the %s key (attribute %q) is empty", ErrKey, which, f.name)
	case size > limit:
		return fmt.Errorf("%w: the %s key (attribute %q) has %d bytes, DynamoDB takes %d", ErrKey, which, f.name, size, limit)
	}
	return nil
}

var kindNames = map[string]string{"S": "a string", "N": "a number", "B": "bytes"}

func kindName(kind string) string { return cmp.Or(kindNames[kind], "type "+kind) }
