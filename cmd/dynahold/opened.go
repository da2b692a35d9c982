package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// opened is a table of which the tool knows what its description says.
type opened struct {
	client *dynamodb.Client
	name   string
	desc   *types.TableDescription
	schema repo.KeySchema
	cfg    repo.TableConfig
	plain  *repo.KeyTable // under the library's own names, for what no key matters to
}

// open describes a table: one request.
func (f *tableFlags) open(ctx context.Context) (*opened, error) {
	client, cfg, err := f.service(ctx)
	if err != nil {
		return nil, err
	}
	plain, err := repo.NewKeyTable(client, f.Table, keyed("-", ""), repo.TableConfig{})
	if err != nil {
		return nil, err
	}
	desc, err := describe(ctx, client, f.Table)
	if missing := new(types.ResourceNotFoundException); errors.As(err, &missing) {
		return nil, outcome{exitNothing, fmt.Errorf("there is no table %q at this endpoint, in this region and account", f.Table)}
	}
	t := &opened{client: client, name: f.Table, cfg: cfg, plain: plain}
	if err != nil {
		return t, err
	}
	t.desc = desc
	for _, key := range desc.KeySchema {
		attribute := repo.KeyAttribute{Name: *key.AttributeName}
		for _, d := range desc.AttributeDefinitions {
			if *d.AttributeName == attribute.Name {
				attribute.Type = d.AttributeType
			}
		}
		if key.KeyType == types.KeyTypeHash {
			t.schema.Partition = attribute
		} else {
			t.schema.Sort = attribute
		}
	}
	return t, nil
}

// errForeign is the error of an answer without what each of DynamoDB's has: the SDK takes it
// for one that has found nothing.
var errForeign = errors.New("the answer is not DynamoDB's: something else at this endpoint, or on the way there, has given it")

// describe describes a table.
func describe(ctx context.Context, client *dynamodb.Client, name string) (*types.TableDescription, error) {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	switch {
	case err != nil:
		return nil, err
	case out.Table == nil:
		return nil, fmt.Errorf("%s on table %q: %w", "DescribeTable", name, errForeign)
	}
	return out.Table, nil
}

// scan reads a page of the table.
func (t *opened) scan(ctx context.Context, in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
	out, err := t.client.Scan(ctx, in)
	if err == nil && out.Items == nil {
		err = fmt.Errorf("%s on table %q: %w", "Scan", t.name, errForeign)
	}
	return out, err
}

// keys is the table as the library sees it.
func (t *opened) keys() (*repo.KeyTable, error) {
	return repo.NewKeyTable(t.client, t.name, t.schema, t.cfg)
}

// locker opens a table as one of locks. It takes none; it lists and breaks those of others.
func (f *tableFlags) locker(ctx context.Context) (*opened, *mutex.Locker, error) {
	t, err := f.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	locker, err := mutex.New(t.client, t.name, mutex.Config{Key: t.schema, Table: t.cfg})
	return t, locker, err
}

// key reads the parts of a key from the command line.
func (t *opened) key(partition, sort string) (key repo.Key, err error) {
	if (sort == "") != (t.schema.Sort.Name == "") {
		if sort == "" {
			return key, usage("table %q has the sort key %q: give its value, too", t.name, t.schema.Sort.Name)
		}
		return key, usage("table %q has no sort key", t.name)
	}
	if key.Partition, err = keyPart(partition, t.schema.Partition); err != nil || sort == "" {
		return key, err
	}
	key.Sort, err = keyPart(sort, t.schema.Sort)
	return key, err
}

// keyPart reads a value of a key: text as it is, a number in digits, bytes in
// base64.
func keyPart(text string, attribute repo.KeyAttribute) (any, error) {
	switch attribute.Type {
	case types.ScalarAttributeTypeN:
		return attributevalue.Number(text), nil
	case types.ScalarAttributeTypeB:
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, usage("key %q has bytes: give them in base64", attribute.Name)
		}
		return b, nil
	}
	return text, nil
}

// keyWords is a key in a sentence.
func keyWords(key repo.Key) string {
	part := func(v any) string {
		if text, is := v.(string); is {
			return strconv.Quote(text)
		}
		return keyText(v)
	}
	if key.Sort == nil {
		return "{" + part(key.Partition) + "}"
	}
	return "{" + part(key.Partition) + " " + part(key.Sort) + "}"
}

// asStored is behind what says that nothing has a key: errors of programs show it without the
// prefixes that their types give it.
func asStored(key repo.Key) string {
	for _, part := range []any{key.Partition, key.Sort} {
		if _, is := part.(string); is {
			return "; keys are given as they are stored: with the prefixes of the tags, which errors of programs leave out"
		}
	}
	return ""
}

// keyText is a part of a key as the command line takes it; "" for none.
func keyText(part any) string {
	switch part := part.(type) {
	case nil:
		return ""
	case []byte:
		return base64.StdEncoding.EncodeToString(part)
	}
	return fmt.Sprint(part)
}
