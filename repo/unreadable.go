package repo

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/redact"
)

// ItemError is an item that cannot be read as what its table has: it does not fit the
// type, or has foreign attributes under the library's names; or one that cannot be
// written, for its version cannot be counted on. It is ErrSchema. It names the attribute and both types, and never a value: what a type that decodes itself says
// in its error is withheld, and errors.Is finds that error all the same.
type ItemError struct {
	Table string
	Key   Key
	Err   error // why
}

func (e *ItemError) Error() string { return fmt.Sprintf("%s: %v", itemName(e.Table, e.Key), e.Err) }

// Unwrap gives the reason.
func (e *ItemError) Unwrap() error { return e.Err }

func (t *mapping) unreadable(raw ddb.Item, why error) error {
	return &ItemError{Table: t.Name(), Key: t.DecodeKey(raw), Err: why}
}

// unfit says which attribute of an item does not fit its field.
func (t *mapping) unfit(raw ddb.Item, err error) error {
	what, of := fmt.Sprintf("it does not fit %v", t.typ), t.typ
	for _, f := range t.schema.fields {
		v, ok := raw[f.name]
		if !ok || codesItself(t.typ) { // such a type may ask for several attributes at once
			continue
		}
		if _, alone := t.decodeBare(ddb.Item{f.name: v}); alone != nil {
			what, of, err = fmt.Sprintf("attribute %q (%s) does not fit field %s (%v) of %v", f.name, ddb.TypeName(v), f.goName, f.typ, t.typ), f.typ, alone
			break
		}
	}
	if why := undecoded(err, of); why != nil {
		return fmt.Errorf("%w: %s: %w", ErrSchema, what, why)
	}
	return fmt.Errorf("%w: %s", ErrSchema, what)
}

// undecoded is what can be told of an error of the decoder, beside the type that it was
// for: its texts repeat values.
func undecoded(err error, outer reflect.Type) error {
	var mistyped *attributevalue.UnmarshalTypeError
	var unparsed *attributevalue.UnmarshalError
	var number *strconv.NumError
	inner := outer
	switch {
	case errors.Is(err, goroutine.ErrEnded):
		return goroutine.ErrEnded
	case errors.As(err, &mistyped):
		inner = mistyped.Type
	case errors.As(err, &unparsed):
		inner = unparsed.Type
	case !errors.As(err, &number):
		return redact.Error(err)
	}
	if inner == nil || inner == outer {
		return nil
	}
	return fmt.Errorf("something in it is for a %v", inner)
}
