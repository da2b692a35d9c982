package once

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/repo"
)

// coding is how results are kept: attributevalue, with the options of the table.
type coding struct {
	encoder *attributevalue.Encoder
	decoder *attributevalue.Decoder
	options attributevalue.EncoderOptions
	types   sync.Map // reflect.Type → typeFacts
}

// newCoding makes it of the options of a table, which are called when that is made.
func newCoding(table *repo.TableConfig) (c *coding, made func()) {
	c = &coding{}
	var decoding attributevalue.DecoderOptions
	given, reads := table.EncoderOptions, table.DecoderOptions
	if given != nil {
		table.EncoderOptions = func(o *attributevalue.EncoderOptions) { given(o); c.options = *o }
	}
	if reads != nil {
		table.DecoderOptions = func(o *attributevalue.DecoderOptions) { reads(o); decoding = *o }
	}
	return c, func() {
		c.encoder = attributevalue.NewEncoder(func(o *attributevalue.EncoderOptions) {
			if given != nil {
				*o = c.options
			}
			c.options = *o
		})
		c.decoder = attributevalue.NewDecoder(func(o *attributevalue.DecoderOptions) {
			if reads != nil {
				*o = decoding
			}
		})
	}
}

// unkept is why a result is not kept: every call with its id is told so.
type unkept struct {
	sentinel error // repo.ErrSchema, or repo.ErrTooLarge
	text     string
}

func (u *unkept) Error() string { return fmt.Sprintf("%v: %v: %s", ErrNoResult, u.sentinel, u.text) }

// Unwrap says which errors it is.
func (u *unkept) Unwrap() []error { return []error{ErrNoResult, u.sentinel} }

// The reasons as a row has them. It has no texts, for they might have parts of results.
var reasons = map[string]*unkept{
	"schema":   {repo.ErrSchema, "the type does not keep it, or DynamoDB does not take it; the call that made it was told more"},
	"tooLarge": {repo.ErrTooLarge, "it does not fit into an item"},
}

// reason is the name under which a row has it.
func (u *unkept) reason() string {
	if errors.Is(u.sentinel, repo.ErrTooLarge) {
		return "tooLarge"
	}
	return "schema"
}

// whyNone is the error that a row has in the place of a result.
func whyNone(reason types.AttributeValue) error {
	if name, ok := reason.(*types.AttributeValueMemberS); ok && reasons[name.Value] != nil {
		return reasons[name.Value]
	}
	return ErrNoResult // of a program that says no more
}

// unkeptBy is why DynamoDB has refused a result.
func unkeptBy(err error) *unkept {
	if ddb.Oversize(err) {
		return &unkept{repo.ErrTooLarge, "DynamoDB does not take the item"}
	}
	return unlike("DynamoDB does not take it: %v", err)
}

func unlike(format string, args ...any) *unkept {
	return &unkept{repo.ErrSchema, fmt.Sprintf(format, args...)}
}

// maxResult is how many bytes a result may have: an item, less its key and its lock.
const maxResult = 396 << 10

// keep is a result as it is kept, and as all callers get it, the first one too: so it
// comes back as others read it, or nobody is given it for theirs.
//
// What fn has done is done: it must not run again, also where the type panics, or ends its
// goroutine.
func (c *coding) keep(result reflect.Value) (kept types.AttributeValue, read reflect.Value, why *unkept) {
	ended := goroutine.Apart(func() {
		defer func() {
			if p := recover(); p != nil {
				kept, why = nil, unlike("%T cannot be encoded or decoded: %v", result.Interface(), redact.Panic(p))
			}
		}()
		kept, read, why = c.tryToKeep(result)
	})
	if ended != nil {
		return nil, read, unlike("%T cannot be encoded or decoded: %v", result.Interface(), ended)
	}
	return kept, read, why
}

func (c *coding) tryToKeep(result reflect.Value) (kept types.AttributeValue, read reflect.Value, why *unkept) {
	value := result.Interface()
	if c.facts(result.Type()).endless && c.deeper(result, maxSteps) {
		return nil, read, unlike("it has more than %d levels", maxLevels)
	}
	raw, err := c.encode(result)
	if err != nil {
		return nil, read, unlike("%T cannot be encoded: %v", value, redact.Encoding(err))
	}
	if kept, err = stored(raw, 1); err != nil {
		return nil, read, unlike("DynamoDB does not take it: %v", err)
	}
	if size := protocol.Size(ddb.Item{"": kept}); size > maxResult {
		return nil, read, &unkept{repo.ErrTooLarge, fmt.Sprintf("it has about %d bytes, at most %d are kept", size, maxResult)}
	}
	read = reflect.New(result.Type()).Elem()
	if err := c.decoder.Decode(ddb.CopyValue(kept), read.Addr().Interface()); err != nil {
		return nil, read, unlike("it is encoded, but not decoded to a %T: %v", value, redact.Error(err))
	}
	again, err := c.encode(read)
	if err == nil {
		again, err = stored(again, 1)
	}
	if err != nil || !ddb.Equal(kept, again) {
		return nil, read, unlike("what is decoded of a %T is encoded to something else", value)
	}
	if lost := c.differ(result, read, ""); lost != "" {
		return nil, read, unlike("%T is decoded to something else at %s", value, lost)
	}
	return kept, read, nil
}

// encode encodes a value as attributevalue does in a struct to which a pointer leads: it
// calls methods of pointers, too.
func (c *coding) encode(v reflect.Value) (types.AttributeValue, error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return c.encoder.Encode(v.Interface())
	case reflect.Slice, reflect.Map:
		if v.IsNil() {
			return c.encoder.Encode(v.Interface())
		}
	}
	return c.encoder.Encode(v.Addr().Interface())
}

// decode reads what is kept into a variable of a type.
func (c *coding) decode(as reflect.Type, kept types.AttributeValue) (result reflect.Value, err error) {
	defer func() { // bytes that are longer than the array they are for, for example
		if p := recover(); p != nil {
			result, err = reflect.Value{}, unfit(as)
		}
	}()
	if plain, err := stored(kept, 1); err == nil {
		kept = plain
	}
	result = reflect.New(as).Elem()
	if err := c.decoder.Decode(kept, result.Addr().Interface()); err != nil {
		return reflect.Value{}, unfit(as) // its text may have parts of the result
	}
	again, err := c.encode(result)
	if err != nil || reflect.TypeOf(again) != reflect.TypeOf(kept) {
		return reflect.Value{}, unfit(as)
	}
	return result, nil
}

func unfit(as reflect.Type) error {
	return unlike("the result that is kept does not fit %T", reflect.Zero(as).Interface())
}
