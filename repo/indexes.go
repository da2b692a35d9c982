package repo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// IndexSchema is a global secondary index of a table, with all attributes of its items. An
// item is in the index if it has both of its key attributes.
type IndexSchema struct {
	Name      string
	Partition KeyAttribute // its type may be left out where a field of T maps the attribute
	Sort      KeyAttribute // its name is empty where the index has no sort key
}

// keyedIndex is one with the fields that are its key.
type keyedIndex struct {
	name   string
	pk, sk field
}

func (x keyedIndex) String() string {
	keys := fmt.Sprintf("%s %s", x.pk.name, x.pk.kind)
	if x.sk.name != "" {
		keys += fmt.Sprintf(", %s %s", x.sk.name, x.sk.kind)
	}
	return fmt.Sprintf("%q (%s)", x.name, keys)
}

// indexes checks those that the settings name.
func (s *schema) indexes(cfg TableConfig) ([]keyedIndex, error) {
	var all []keyedIndex
	seen := map[string]bool{}
	for _, given := range cfg.Indexes {
		x := keyedIndex{name: given.Name}
		switch {
		case !tableName.MatchString(given.Name) || strings.Contains(given.Name, ":"):
			return nil, fmt.Errorf("%w: TableConfig.Indexes: name %q: use 3 to 255 letters, digits, dots, _ or -", ErrConfig, given.Name)
		case seen[given.Name]:
			return nil, fmt.Errorf("%w: TableConfig.Indexes has %q twice", ErrConfig, given.Name)
		case given.Partition.Name == "" || given.Partition.Name == given.Sort.Name:
			return nil, fmt.Errorf("%w: TableConfig.Indexes: %q needs a partition key, and another attribute for a sort key", ErrConfig, given.Name)
		}
		seen[given.Name] = true
		var err error
		if x.pk, err = s.indexKey(given.Name, given.Partition); err == nil && given.Sort.Name != "" {
			x.sk, err = s.indexKey(given.Name, given.Sort)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// indexKey is a key attribute of an index. That of a field of T has the field's type.
func (s *schema) indexKey(name string, a KeyAttribute) (field, error) {
	for _, f := range append([]field{s.pk, s.sk}, s.fields...) {
		if f.name != a.Name {
			continue
		}
		if len(s.fields) > 0 {
			var err error
			if f, err = s.keyField(&index{name: name}, a.Name); err != nil {
				return f, err
			}
		}
		if a.Type != "" && string(a.Type) != f.kind {
			return f, fmt.Errorf("%w: TableConfig.Indexes: %q has %q as %s, which is %s", ErrConfig, name, a.Name, kindName(string(a.Type)), kindName(f.kind))
		}
		return f, nil
	}
	f, err := a.field("index", Attributes{})
	if err != nil {
		return f, fmt.Errorf("TableConfig.Indexes: %q: %w", name, err)
	}
	return f, nil
}

// addIndexes puts the indexes into the request that makes the table.
func (t *KeyTable) addIndexes(in *dynamodb.CreateTableInput) {
	for _, x := range t.indexes {
		made := types.GlobalSecondaryIndex{IndexName: &x.name, Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}}
		for _, key := range []struct {
			f    field
			role types.KeyType
		}{{x.pk, types.KeyTypeHash}, {x.sk, types.KeyTypeRange}} {
			if key.f.name == "" {
				continue
			}
			made.KeySchema = append(made.KeySchema, types.KeySchemaElement{AttributeName: &key.f.name, KeyType: key.role})
			if !slices.ContainsFunc(in.AttributeDefinitions, func(d types.AttributeDefinition) bool { return *d.AttributeName == key.f.name }) {
				in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &key.f.name, AttributeType: types.ScalarAttributeType(key.f.kind)})
			}
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, made)
	}
}

// hasIndex is an index that a table has, global or local.
type hasIndex struct {
	keys       []types.KeySchemaElement
	projection *types.Projection
	building   bool
}

func indexesOf(desc *types.TableDescription) map[string]hasIndex {
	all := map[string]hasIndex{}
	for _, x := range desc.GlobalSecondaryIndexes {
		all[*x.IndexName] = hasIndex{x.KeySchema, x.Projection, x.IndexStatus == types.IndexStatusCreating}
	}
	for _, x := range desc.LocalSecondaryIndexes {
		all[*x.IndexName] = hasIndex{x.KeySchema, x.Projection, false}
	}
	return all
}

// verifyIndexes says of all indexes at once which a table does not have as they are named.
func (t *KeyTable) verifyIndexes(desc *types.TableDescription, kinds map[string]string) error {
	var lacks []string
	has := indexesOf(desc)
	for _, x := range t.indexes {
		if why := x.lacking(has[x.name], kinds); why != "" {
			lacks = append(lacks, x.String()+": "+why)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("%w: table %q lacks indexes of TableConfig.Indexes, with all attributes: %s; add them by UpdateTable, or in the table's template", ErrSchema, t.Name(), strings.Join(lacks, "; "))
	}
	return nil
}

// lacking says why an index of the table is not the one that is named; "" if it is.
func (x keyedIndex) lacking(has hasIndex, kinds map[string]string) string {
	keys := map[types.KeyType]string{}
	for _, k := range has.keys {
		keys[k.KeyType] = *k.AttributeName
	}
	pk, sk := keys[types.KeyTypeHash], keys[types.KeyTypeRange]
	switch {
	case pk == "":
		return "there is none"
	case pk != x.pk.name || sk != x.sk.name || kinds[pk] != x.pk.kind || sk != "" && kinds[sk] != x.sk.kind:
		return fmt.Sprintf("its key is another: %v", keyedIndex{x.name, field{name: pk, kind: kinds[pk]}, field{name: sk, kind: kinds[sk]}})
	case has.projection != nil && has.projection.ProjectionType != types.ProjectionTypeAll:
		return fmt.Sprintf("it has not all attributes (%s)", has.projection.ProjectionType)
	}
	return ""
}

// unfinished reports whether a table is being created, or an index that is named being filled.
func (t *KeyTable) unfinished(desc *types.TableDescription) bool {
	has := indexesOf(desc)
	return desc.TableStatus == types.TableStatusCreating || slices.ContainsFunc(t.indexes, func(x keyedIndex) bool { return has[x.name].building })
}
