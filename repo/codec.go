package repo

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/internal/stored"
)

// Encode is [Table.Encode].
func (t *mapping) Encode(item any) (ddb.Item, error) {
	t.schema.name(valueOf(item))
	raw, err := encoded(t, (*mapping).encode, item)
	if err != nil {
		return nil, err
	}
	if err := t.core.CheckType(raw); err != nil {
		return nil, err
	}
	if err := t.checkKeyOf(raw); err != nil {
		return nil, err
	}
	return t.own(raw), nil
}

// encoded names the error of an encoding.
func encoded[A, B any](t *mapping, encode func(*mapping, A) (B, error), from A) (to B, err error) {
	if to, err = contained(t, encode, from); err != nil {
		return to, fmt.Errorf("%w: encoding %v: %w", ErrSchema, t.typ, err)
	}
	return to, nil
}

// contained codes an item. A type that codes itself may panic, or end its goroutine, and not
// only its user's: one that holds a lock, or for which others wait. The decoder panics, too:
// on bytes that are longer than the array they are for. Plain types, which have no such
// functions, pay for no closure: hence the two ways.
func contained[A, B any](t *mapping, code func(*mapping, A) (B, error), from A) (B, error) {
	if t.core.Shares || t.codec.texts {
		return apart(t, code, from)
	}
	return caught(t, code, from)
}

func apart[A, B any](t *mapping, code func(*mapping, A) (B, error), from A) (to B, err error) {
	ended := goroutine.Apart(func() { to, err = caught(t, code, from) })
	return to, cmp.Or(ended, err)
}

func caught[A, B any](t *mapping, code func(*mapping, A) (B, error), from A) (to B, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = redact.Panic(p)
		}
	}()
	return code(t, from)
}

// own copies an image of which a type that codes itself may share parts: what
// happens to the one must not happen to the other.
func (t *mapping) own(raw ddb.Item) ddb.Item {
	if !t.core.Shares {
		return raw
	}
	return ddb.Copy(raw)
}

// encode is Encode without its check.
func (t *mapping) encode(item any) (raw ddb.Item, err error) {
	if t.plan == nil {
		raw, err = t.codec.encodeItem(item)
	} else {
		raw, err = t.plan.encode(valueOf(item))
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
func (t *mapping) prefixed() bool { return t.pk.role.prefix+t.sk.role.prefix != "" }

// bared is an item with the bare key that T has, and whether its key has the
// prefixes of the table's type: those of other types have others.
func (t *mapping) bared(raw ddb.Item) (ddb.Item, bool) {
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

func (t *mapping) checkKeyOf(raw ddb.Item) error {
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

// EncodeGiven is Encode for an item that a caller hands in. It refuses an event
// time that would lose its fraction (ErrSchema): two events of one second would
// look like one that was delivered twice. And an event id that would not come
// back as it is: a redelivered event would not be known again.
func (t *mapping) EncodeGiven(item any) (ddb.Item, error) {
	raw, err := t.Encode(item)
	if err == nil {
		err = t.checkEventTime(item)
	}
	if err != nil {
		return nil, err
	}
	if err := ddb.KeptText(raw[t.core.EventID]); err != nil {
		return nil, fmt.Errorf("%w: field %s: %w", ErrSchema, t.schema.eventID.goName, err)
	}
	return raw, nil
}

// CheckEvent refuses, beside a key, the time or id of an event that the type could not read
// back: one beyond the range of its field.
func (t *mapping) CheckEvent(event ddb.Item) error {
	if codesItself(t.typ) { // it may ask for more attributes
		return nil
	}
	if _, err := t.decodeBare(event); err != nil {
		return t.unreadable(event, t.unfit(event, err))
	}
	return nil
}

func (t *mapping) checkEventTime(item any) error {
	if !t.core.EventSeconds {
		return nil
	}
	f := t.schema.eventTime
	var at time.Time
	if v, err := valueOf(item).FieldByIndexErr(f.index); err == nil { // else it is below a nil pointer: not set
		at, _ = v.Convert(timeType).Interface().(time.Time)
	}
	if err := stored.WholeSeconds(at); err != nil {
		return fmt.Errorf("%w: field %s: %w", ErrSchema, f.goName, err)
	}
	return nil
}

// Decode is [Table.Decode].
func (t *mapping) Decode(raw ddb.Item) (any, error) {
	if len(raw) == 0 {
		return nil, fmt.Errorf("%w: an image without attributes, of table %q", ErrNotFound, t.Name())
	}
	if err := t.core.CheckType(raw); err != nil {
		return nil, err
	}
	if err := t.checkShape(raw); err != nil {
		return nil, err
	}
	if t.core.Hidden(raw) {
		return nil, fmt.Errorf("%w: %v in table %q is a stub or a tombstone", ErrNotFound, t.DecodeKey(raw), t.Name())
	}
	return t.decode(raw)
}

// checkShape refuses an item with foreign attributes under the library's names.
func (t *mapping) checkShape(raw ddb.Item) error {
	if err := t.core.CheckShape(raw); err != nil {
		return t.unreadable(raw, fmt.Errorf("%w: %w", ErrSchema, err))
	}
	return nil
}

// decode is Decode of an item that readers see.
func (t *mapping) decode(raw ddb.Item) (item any, err error) {
	bare, mine := t.bared(t.own(raw))
	if !mine {
		return nil, t.unreadable(raw, fmt.Errorf("%w: its key has not the prefix of %v", ErrSchema, t.typ))
	}
	if item, err = t.decodeBare(bare); err != nil {
		return nil, t.unreadable(raw, t.unfit(bare, err))
	}
	return item, nil
}

// decodeBare is decode of an item with a bare key. Its error may have values.
func (t *mapping) decodeBare(raw ddb.Item) (any, error) {
	return contained(t, (*mapping).decodeNew, raw)
}

func (t *mapping) decodeNew(raw ddb.Item) (any, error) {
	made := reflect.New(t.typ)
	if t.plan != nil {
		if t.plan.decode(raw, made.Elem()) {
			return made.Interface(), nil
		}
		made.Elem().SetZero()
	}
	// The decoder also matches names that differ in case: it must not see what
	// the type does not map.
	known := make(ddb.Item, len(t.known))
	for _, name := range t.known {
		if v, ok := raw[name]; ok {
			known[name] = v
		}
	}
	return made.Interface(), t.codec.decodeItem(known, made.Interface())
}
