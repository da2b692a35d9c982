package repo

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// field is an attribute of the user's type.
type field struct {
	name    string // of the attribute
	goName  string
	role    role
	kind    string // DynamoDB's type, for keys: S, N, B
	index   []int  // for reflect
	typ     reflect.Type
	options []string // of the dynamodbav tag
	viaPtr  bool     // reached through an embedded pointer
}

func (f field) has(option string) bool { return slices.Contains(f.options, option) }

// schema is what NewTable learned about the user's type.
type schema struct {
	pk, sk, version, eventTime, eventID field
	entity, created, updated            field // entity names the type of an item
	unique                              []stored.Unique
	mapped                              []string // without keys
	fields                              []field  // all
	codec                               *codec
}

func newSchema(t reflect.Type, attrs Attributes, c *codec) (*schema, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: T must be a struct with dynamodbav and repo tags, not %v: use the struct itself, not a pointer or a map", ErrSchema, t)
	}
	fields, err := fieldsOf(t, c.tagKey)
	if err != nil {
		return nil, fmt.Errorf("%w: type %v: %w", ErrSchema, t, err)
	}
	s, err := assign(fields, c)
	if err == nil && !codesItself(t) {
		err = c.checkStored(fields, map[reflect.Type]bool{t: true})
	}
	if err == nil {
		err = s.collisions(fields, attrs)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: type %v: %w", ErrSchema, t, err)
	}
	return s, nil
}

// assign gives the roles to fields and verifies their types.
func assign(fields []field, c *codec) (*schema, error) {
	s := &schema{fields: fields, codec: c}
	places := map[string]struct {
		of    *field
		check func(field) (field, error)
	}{
		"pk": {&s.pk, c.checkKeyField}, "sk": {&s.sk, c.checkKeyField}, "type": {&s.entity, c.checkEntity}, "version": {&s.version, c.checkVersion},
		"eventtime": {&s.eventTime, c.checkEventTime}, "eventid": {&s.eventID, c.checkEventID},
		"created": {&s.created, c.checkStamp}, "updated": {&s.updated, c.checkStamp},
	}
	for _, f := range fields {
		if f.role.name == "" {
			s.mapped = append(s.mapped, f.name)
			continue
		}
		if f.viaPtr {
			return nil, fmt.Errorf("field %s has the role %q inside an embedded pointer, which may be nil: embed the struct itself", f.goName, f.role.name)
		}
		if f.role.name == "unique" {
			if err := s.addUnique(f); err != nil {
				return nil, err
			}
			continue
		}
		place := places[f.role.name]
		if place.of.name != "" {
			return nil, fmt.Errorf("fields %s and %s both have the role %q: give it to one", place.of.goName, f.goName, f.role.name)
		}
		f, err := place.check(f)
		if err != nil {
			return nil, err
		}
		*place.of = f
		if f.role.name != "pk" && f.role.name != "sk" {
			s.mapped = append(s.mapped, f.name)
		}
	}
	switch {
	case s.pk.name == "":
		return nil, fmt.Errorf("no field is the partition key: add the tag `repo:\"pk\"` to it")
	case s.eventID.name != "" && s.eventTime.name == "":
		return nil, fmt.Errorf("field %s breaks ties of event times (repo:\"eventid\"), but no field has repo:\"eventtime\"", s.eventID.goName)
	}
	slices.Sort(s.mapped)
	return s, s.checkUnique()
}

func (s *schema) collisions(fields []field, attrs Attributes) error {
	for _, f := range fields {
		role := attrs.roleOf(f.name)
		if role == "TTL" && f.role.name == "" { // it may be the user's own
			if !s.codec.isNumber(f) {
				return fmt.Errorf("field %s maps attribute %q, by which DynamoDB removes items, but would not be stored as a number, and they would never be removed: use an integer of Unix seconds, or a time.Time with the option unixtime, as in `dynamodbav:\"%s,unixtime\"`; if it means something else, set TableConfig.Attributes.TTL to another name", f.goName, f.name, f.name)
			}
		} else if role != "" {
			return fmt.Errorf("field %s maps attribute %q, which the library keeps for itself: rename the attribute, or set TableConfig.Attributes.%s to another name", f.goName, f.name, role)
		}
	}
	return nil
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	unixTimeType = reflect.TypeFor[attributevalue.UnixTime]()
	marshaler    = reflect.TypeFor[attributevalue.Marshaler]()
	aTime        = time.Unix(0, 1e8).UTC()
)

func (c *codec) isInteger(t reflect.Type) bool {
	return reflect.Int <= t.Kind() && t.Kind() <= reflect.Uint64 && !c.marshals(t)
}

// isNumber reports whether a field is stored as a number, if it is stored.
func (c *codec) isNumber(f field) bool {
	t, _ := pointed(f.typ)
	if f.has("unixtime") && t.ConvertibleTo(timeType) {
		t = unixTimeType
	}
	av, err := encodeValue(c.encoder, keySample(t))
	kind := ddb.TypeName(av)
	return err == nil && !f.has("string") && (kind == "N" || kind == "NULL" && c.marshals(t))
}

func (c *codec) checkKeyField(f field) (field, error) {
	for _, o := range []string{"string", "unixtime"} {
		if f.has(o) {
			return f, fmt.Errorf("field %s is a key: the option %q of its dynamodbav tag is not supported there; use a field of the type that is stored", f.goName, o)
		}
	}
	if f.typ.Kind() == reflect.Pointer {
		return f, fmt.Errorf("field %s is a key of type %v: a pointer may be nil; use the value itself", f.goName, f.typ)
	}
	// What the encoder makes of a value is what the table must have; the zero
	// value shows it for every type that encodes at all.
	av, err := encodeValue(c.encoder, keySample(f.typ))
	if err != nil {
		return f, fmt.Errorf("field %s is a key of type %v, which cannot be encoded: %w", f.goName, f.typ, err)
	}
	f.kind = ddb.TypeName(av)
	if s, ok := av.(*types.AttributeValueMemberS); ok && s.Value == aTime.Format(time.RFC3339Nano) && (f.role.name == "pk" || f.role.name == "sk") {
		return f, fmt.Errorf("field %s is a key and would be stored as RFC 3339 text, which does not sort (fractions of seconds vary in length), and is another key in another zone: use an integer of milliseconds, attributevalue.UnixTime, or a string", f.goName)
	}
	if f.role.prefix != "" && f.kind != "S" {
		return f, fmt.Errorf("field %s is a key of type %v and has a prefix: only texts can have one", f.goName, f.typ)
	}
	if f.kind != "S" && f.kind != "N" && f.kind != "B" {
		return f, fmt.Errorf("field %s is a key of type %v, which DynamoDB would store as %s: a key must be a string, a number or bytes", f.goName, f.typ, f.kind)
	}
	return f, nil
}

// keySample is a value of a key's type that encodes to its proper type: nil
// slices and empty strings may encode to NULL. A time has a fraction.
func keySample(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == timeType:
		v.Set(reflect.ValueOf(aTime))
	case t.Kind() == reflect.String:
		v.SetString("x")
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		v.SetBytes([]byte{1})
	}
	return v
}

func (c *codec) checkVersion(f field) (field, error) {
	if !c.isInteger(f.typ) || f.has("string") {
		return f, fmt.Errorf("field %s is the version but has type %v: use an integer, such as int64, without the option \"string\"", f.goName, f.typ)
	}
	if f.typ.Bits() < 32 {
		return f, fmt.Errorf("field %s is the version but has type %v, which overflows soon: use an integer of 32 bits or more", f.goName, f.typ)
	}
	return f, nil
}

func (c *codec) checkEventTime(f field) (field, error) {
	switch {
	case f.typ == unixTimeType, f.typ == timeType && f.has("unixtime"):
		return f, nil
	case f.typ == timeType:
		return f, fmt.Errorf("field %s is the event time and would be stored as RFC 3339 text, which does not sort (fractions of seconds vary in length): use an integer of milliseconds, or, for whole seconds, add the option unixtime to its tag, as in `dynamodbav:\"%s,unixtime\"`", f.goName, f.name)
	case c.isInteger(f.typ) && !f.has("string"):
		return f, nil
	}
	return f, fmt.Errorf("field %s is the event time but has type %v: use an integer (seconds, milliseconds, a sequence number) or time.Time with the option unixtime; texts and floats do not sort reliably", f.goName, f.typ)
}

func (c *codec) checkEventID(f field) (field, error) {
	isText := c.isText(f.typ)
	if !isText && (!c.isInteger(f.typ) || f.has("string")) {
		return f, fmt.Errorf("field %s is the event id but has type %v: use a string or an integer", f.goName, f.typ)
	}
	f.kind = "N"
	if isText {
		f.kind = "S"
	}
	return f, nil
}
