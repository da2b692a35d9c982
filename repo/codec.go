package repo

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// Encode returns the attributes of an item, as a write would send them: with the
// type and the prefixes of keys that the roles of T name. Its key must be valid
// (ErrKey), and its type, if it says one, the table's (*TypeError).
func (t *Table[T]) Encode(item T) (raw map[string]types.AttributeValue, err error) {
	// A type that encodes itself may panic, and not only in its user's goroutine.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: encoding %T: %v", ErrSchema, item, p)
		}
	}()
	t.schema.name(reflect.ValueOf(&item).Elem())
	raw, err = t.encode(&item)
	if err != nil {
		return nil, fmt.Errorf("%w: encoding %T: %w", ErrSchema, item, err)
	}
	if err := t.core.CheckType(raw); err != nil {
		return nil, err
	}
	if err := t.checkKeyOf(raw); err != nil {
		return nil, err
	}
	return t.own(raw), nil
}

// own copies an image of which a type that codes itself may share parts: what
// happens to the one must not happen to the other.
func (t *Table[T]) own(raw ddb.Item) ddb.Item {
	if !t.core.Shares {
		return raw
	}
	return ddb.Copy(raw)
}

// encode is Encode without its check.
func (t *Table[T]) encode(item *T) (raw ddb.Item, err error) {
	if t.plan == nil {
		raw, err = t.codec.encodeItem(*item)
	} else {
		raw, err = t.plan.encode(reflect.ValueOf(item).Elem())
	}
	if err != nil || !t.prefixed() {
		return raw, err
	}
	raw = maps.Clone(raw) // a type that encodes itself may keep it
	for _, f := range []field{t.schema.pk, t.schema.sk} {
		if v, ok := raw[f.name]; ok {
			raw[f.name] = f.stored(v)
		}
	}
	return raw, nil
}

// prefixed reports whether keys are stored with prefixes.
func (t *Table[T]) prefixed() bool { return t.pk.role.prefix+t.sk.role.prefix != "" }

// bared is an item with the bare key that T has, and whether its key has the
// prefixes of the table's type: those of other types have others.
func (t *Table[T]) bared(raw ddb.Item) (ddb.Item, bool) {
	if !t.prefixed() || len(raw) == 0 {
		return raw, true
	}
	raw = maps.Clone(raw)
	for _, f := range []field{t.schema.pk, t.schema.sk} {
		if f.role.prefix == "" {
			continue
		}
		s, ok := raw[f.name].(*types.AttributeValueMemberS)
		if !ok || len(s.Value) <= len(f.role.prefix) || !strings.HasPrefix(s.Value, f.role.prefix) {
			return raw, false
		}
		raw[f.name] = ddb.Text(s.Value[len(f.role.prefix):])
	}
	return raw, true
}

func (t *Table[T]) checkKeyOf(raw ddb.Item) error {
	s := t.schema
	for _, k := range []struct {
		which string
		f     field
		limit int
	}{{"partition", s.pk, maxPartition}, {"sort", s.sk, maxSort}} {
		if k.f.name == "" {
			continue
		}
		av, ok := raw[k.f.name]
		if _, null := av.(*types.AttributeValueMemberNULL); !ok || null {
			return fmt.Errorf("%w: the %s key (field %s, attribute %q) is empty", ErrKey, k.which, k.f.goName, k.f.name)
		}
		if err := checkPart(k.which, av, k.f, k.limit); err != nil {
			return err
		}
	}
	return nil
}

// encodeGiven is Encode for an item that a caller hands in. It refuses an event
// time that would lose its fraction (ErrSchema): two events of one second would
// look like one that was delivered twice. And an event id that would not come
// back as it is: a redelivered event would not be known again.
func (t *Table[T]) encodeGiven(item T) (map[string]types.AttributeValue, error) {
	raw, err := t.Encode(item)
	if err == nil {
		err = t.checkEvent(item, raw)
	}
	if err != nil {
		return nil, err
	}
	return raw, nil
}

// checkEvent verifies what an event is told apart by.
func (t *Table[T]) checkEvent(item T, raw ddb.Item) error {
	if err := ddb.KeptText(raw[t.core.EventID]); err != nil {
		return fmt.Errorf("%w: field %s: %w", ErrSchema, t.schema.eventID.goName, err)
	}
	return t.checkEventTime(item)
}

func (t *Table[T]) checkEventTime(item T) error {
	if !t.core.EventSeconds {
		return nil
	}
	f := t.schema.eventTime
	var at time.Time
	if v, err := reflect.ValueOf(item).FieldByIndexErr(f.index); err == nil { // else it is below a nil pointer: not set
		at, _ = v.Convert(timeType).Interface().(time.Time)
	}
	if err := protocol.WholeSeconds(at); err != nil {
		return fmt.Errorf("%w: field %s: %w", ErrSchema, f.goName, err)
	}
	return nil
}

// Decode reads an item, for example an image of a stream record. Attributes
// that T does not know are left out. ErrNotFound for the image of a stub or a
// tombstone, which readers take for no item; *TypeError (ErrSchema) for one of
// another type, ErrSchema for one that does not fit T, has a key without T's prefix,
// or has foreign attributes under the library's names.
func (t *Table[T]) Decode(raw map[string]types.AttributeValue) (item T, err error) {
	if err := t.core.CheckType(raw); err != nil {
		return item, err
	}
	if err := t.checkShape(raw); err != nil {
		return item, err
	}
	if len(raw) > 0 && t.core.Hidden(raw) {
		return item, fmt.Errorf("%w: %v in table %q is a stub or a tombstone", ErrNotFound, t.DecodeKey(raw), t.Name())
	}
	return t.decode(raw)
}

// checkShape refuses an item with foreign attributes under the library's names.
func (t *Table[T]) checkShape(raw ddb.Item) error {
	if err := t.core.CheckShape(raw); err != nil {
		return fmt.Errorf("%w: item %v in table %q: %w", ErrSchema, t.DecodeKey(raw), t.Name(), err)
	}
	return nil
}

// decode is Decode of an item that readers see.
func (t *Table[T]) decode(raw ddb.Item) (item T, err error) {
	// The decoder panics on some values, such as bytes that are longer than
	// the array they are for.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the item does not fit %T: %v", ErrSchema, item, p)
		}
	}()
	raw, mine := t.bared(t.own(raw))
	if !mine {
		return item, fmt.Errorf("%w: item %v in table %q: its key has not the prefix of %T", ErrSchema, t.DecodeKey(raw), t.Name(), item)
	}
	if t.plan != nil {
		if t.plan.decode(raw, reflect.ValueOf(&item).Elem()) {
			return item, nil
		}
		item = *new(T)
	}
	// The decoder also matches names that differ in case: it must not see what
	// T does not map.
	known := make(ddb.Item, len(t.known))
	for _, name := range t.known {
		if v, ok := raw[name]; ok {
			known[name] = v
		}
	}
	if err := t.codec.decodeItem(known, &item); err != nil {
		return item, fmt.Errorf("%w: the item does not fit %T: %w", ErrSchema, item, err)
	}
	return item, nil
}

// KeyOf is the primary key of an item.
func (t *Table[T]) KeyOf(item T) Key {
	v := reflect.ValueOf(item)
	key := Key{Partition: v.FieldByIndex(t.schema.pk.index).Interface()}
	if t.schema.sk.name != "" {
		key.Sort = v.FieldByIndex(t.schema.sk.index).Interface()
	}
	return key
}

// Version is the version of an item; 0 where T has no such field.
func (t *Table[T]) Version(item T) int64 {
	if t.schema.version.name == "" {
		return 0
	}
	v := reflect.ValueOf(item).FieldByIndex(t.schema.version.index)
	if v.CanInt() {
		return v.Int()
	}
	return int64(v.Uint()) // a version beyond int64 cannot be reached by counting
}

// withVersion returns the item with another version; unchanged where T has no
// such field.
func (t *Table[T]) withVersion(item T, version int64) T {
	if t.schema.version.name == "" {
		return item
	}
	v := reflect.ValueOf(&item).Elem().FieldByIndex(t.schema.version.index)
	if v.CanInt() {
		v.SetInt(version)
	} else {
		v.SetUint(uint64(version)) // versions are never negative
	}
	return item
}
