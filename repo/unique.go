package repo

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// UniqueOf says what is unique, to a program without the type.
type UniqueOf struct {
	// Attributes are those of each name: the name of the one attribute, or of unique=NAME.
	Attributes map[string][]string
	// Type is the attribute that names an item's type, and TypeName the type, where the
	// type has the role type=NAME. The prefixes are those of its keys.
	Type, TypeName              string
	PartitionPrefix, SortPrefix string
}

// WithUnique is the table with what is unique in it, for package unique in a program
// without the type. ErrConfig: no claims can be made of it.
func (t *KeyTable) WithUnique(of UniqueOf) (*KeyTable, error) {
	s := &schema{pk: t.pk, sk: t.sk, codec: t.codec}
	s.pk.role.prefix, s.sk.role.prefix = of.PartitionPrefix, of.SortPrefix
	s.entity.name, s.entity.role.of = of.Type, of.TypeName
	for _, name := range slices.Sorted(maps.Keys(of.Attributes)) {
		for _, attribute := range of.Attributes[name] { // as no type has them
			if role := Attributes(t.core.Attr).roleOf(attribute); t.core.IsKey(attribute) || role != "" && role != "TTL" || attribute == stored.ClaimAttribute {
				return nil, fmt.Errorf("%w: attribute %q is of the table's key, or the library's own: no program can have it unique", ErrConfig, attribute)
			}
		}
		s.unique = append(s.unique, stored.Unique{Name: name, Attributes: slices.Clone(of.Attributes[name])})
	}
	if err := s.checkUnique(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return newKeyTable(t.client, t.Name(), s, t.cfg)
}

// addUnique notes a field with the role unique, alone or with others of one name.
func (s *schema) addUnique(f field) error {
	if err := s.codec.checkUnique(f); err != nil {
		return err
	}
	s.mapped = append(s.mapped, f.name)
	name := f.role.of
	if name == "" {
		name = f.name
	}
	i := slices.IndexFunc(s.unique, func(u stored.Unique) bool { return u.Name == name })
	switch {
	case i < 0:
		s.unique = append(s.unique, stored.Unique{Name: name, Attributes: []string{f.name}})
	case f.role.of == "" || slices.Contains(s.unique[i].Attributes, name):
		return fmt.Errorf("field %s is unique as %q, and others are so together: give these another name", f.goName, name)
	default:
		s.unique[i].Attributes = append(s.unique[i].Attributes, f.name)
	}
	return nil
}

// checkUnique refuses a field of whose values no key can be made.
func (c *codec) checkUnique(f field) error {
	inner, _ := pointed(f.typ)
	sample := keySample(inner)
	if f.has("unixtime") || f.has("string") {
		return nil // a number, a text
	}
	if f.typ.Kind() == reflect.Pointer {
		to := reflect.New(inner)
		to.Elem().Set(sample)
		sample = to
	}
	av, err := encodeValue(c.encoder, sample)
	if err != nil {
		return fmt.Errorf("field %s is unique and of type %v, which cannot be encoded: %w", f.goName, f.typ, err)
	}
	if kind := ddb.TypeName(av); kind != "S" && kind != "N" && kind != "B" {
		return fmt.Errorf("field %s is unique and of type %v, which DynamoDB would store as %s: use a string, a number or bytes", f.goName, f.typ, kind)
	}
	return nil
}

// checkUnique completes what is unique, and refuses a type whose table cannot have claims.
func (s *schema) checkUnique() error {
	if len(s.unique) == 0 {
		return nil
	}
	if s.pk.kind == "N" {
		return fmt.Errorf("field %s is unique, which takes rows with keys that are texts, but the partition key is a number: use a string or bytes for it", s.unique[0].Name)
	}
	scope := s.entity.role.of
	if scope == "" {
		scope = s.pk.role.prefix + s.sk.role.prefix
	}
	for i := range s.unique {
		u := &s.unique[i]
		u.Scoped = u.Name
		if scope != "" {
			u.Scoped = scope + "/" + u.Name
		}
		if len(u.Scoped) > maxScoped {
			return fmt.Errorf("%q, which is unique, has a name of %d bytes, with that of the type before it: at most %d are possible", u.Name, len(u.Scoped), maxScoped)
		}
		slices.Sort(u.Attributes)
	}
	slices.SortFunc(s.unique, func(a, b stored.Unique) int { return strings.Compare(a.Scoped, b.Scoped) })
	for _, f := range s.fields {
		if f.name == stored.ClaimAttribute {
			return fmt.Errorf("field %s maps attribute %q, which claims of unique attributes have: rename the attribute", f.goName, f.name)
		}
	}
	return nil
}

// maxScoped bounds the names of what is unique, in bytes, so that the keys of claims fit.
const maxScoped = 1024

// claimKey is the key of a claim's row.
func (s *schema) claimKey(text string) ddb.Item {
	part := func(kind string, text string) types.AttributeValue {
		switch kind {
		case "N":
			return ddb.Integer(0)
		case "B":
			return ddb.Bytes([]byte(text))
		}
		return ddb.Text(text)
	}
	key := ddb.Item{s.pk.name: part(s.pk.kind, text)}
	if s.sk.name != "" {
		key[s.sk.name] = part(s.sk.kind, "unique")
	}
	return key
}
