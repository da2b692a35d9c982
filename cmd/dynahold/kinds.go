package main

import (
	"context"
	"errors"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/repo"
)

// kind is a kind of table that a package of the library makes.
type kind struct {
	words  string // what its rows are
	look   string // the command that lists them
	schema repo.KeySchema
	fits   func(row map[string]types.AttributeValue) bool
}

var (
	ofLocks  = kind{"named locks (package mutex)", "locks list", keyed("name", ""), func(row map[string]types.AttributeValue) bool { return row["lockToken"] != nil }}
	ofOnce   = kind{"ids of operations (package once)", "item show", keyed("id", ""), func(row map[string]types.AttributeValue) bool { return isNumber(row["done"]) }}
	ofQueues = kind{"queues (package ticket)", "queue list", keyed("queue", ""), func(row map[string]types.AttributeValue) bool { return isNumber(row["next"]) && isNumber(row["n"]) }}
	ofJobs   = kind{"permits and jobs (packages semaphore and jobs)", "jobs list", keyed("pk", "sk"), isJobRow}
)

// jobRow are the partition keys of resources, jobs, dead letters and ids. The wake-up row
// has one word, in both keys.
var jobRow, wakeUp = regexp.MustCompile(`^((RESOURCE|LATER)#[0-9a-f]|(JOBS|DEAD|IDS|UNIQUE|KEPT)#.+|SCHEDULES)$`), regexp.MustCompile(`^[A-Z]+$`)

func isJobRow(row map[string]types.AttributeValue) bool {
	pk, sk := text(row["pk"]), text(row["sk"])
	return jobRow.MatchString(pk) || wakeUp.MatchString(pk) && pk == sk
}

func keyed(partition, sort string) (key repo.KeySchema) {
	key.Partition = repo.KeyAttribute{Name: partition, Type: types.ScalarAttributeTypeS}
	if sort != "" {
		key.Sort = repo.KeyAttribute{Name: sort, Type: types.ScalarAttributeTypeS}
	}
	return key
}

func text(v types.AttributeValue) string {
	if s, is := v.(*types.AttributeValueMemberS); is {
		return s.Value
	}
	return ""
}

func isNumber(v types.AttributeValue) bool {
	_, is := v.(*types.AttributeValueMemberN)
	return is
}

// openAs is open for a table that must be of a kind, by its keys. Who may not describe it is
// taken at his word.
func (f *tableFlags) openAs(ctx context.Context, k kind) (*opened, error) {
	t, err := f.open(ctx)
	if denied := (interface{ ErrorCode() string })(nil); errors.As(err, &denied) && denied.ErrorCode() == "AccessDeniedException" {
		t.schema = k.schema
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	if t.schema != k.schema {
		return nil, t.not(ctx, k)
	}
	return t, nil
}

// not is the error of a command that is for another kind of table.
func (t *opened) not(ctx context.Context, k kind) error {
	rows, _ := t.few(ctx) // the keys tell something, too
	is, sure := t.isOf(rows)
	keys := "the key " + keyName(t.schema.Partition)
	if t.schema.Sort.Name != "" {
		keys += " and " + keyName(t.schema.Sort)
	}
	switch {
	case sure:
		return usage("table %q is one of %s: see dynahold %s; this command is for %s", t.name, is.words, is.look, k.words)
	case is.words != "" && len(rows) == 0:
		return usage("table %q is empty, and has %s, as those of %s have; this command is for %s", t.name, keys, is.words, k.words)
	}
	return usage("table %q is one of items, with %s; this command is for %s", t.name, keys, k.words)
}

// isOf is the kind of a table that has these rows; sure, if all of them tell it.
func (t *opened) isOf(rows []map[string]types.AttributeValue) (is kind, sure bool) {
	for _, k := range []kind{ofLocks, ofOnce, ofQueues, ofJobs} {
		if t.schema == k.schema {
			is, sure = k, len(rows) > 0
		}
	}
	for _, row := range rows {
		sure = sure && is.fits(row)
	}
	return is, sure
}

// few are the first rows of the table, if it has any.
func (t *opened) few(ctx context.Context) ([]map[string]types.AttributeValue, error) {
	out, err := t.scan(ctx, &dynamodb.ScanInput{TableName: &t.name, Limit: aws.Int32(10)})
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}

// nothing is asked where a command has found nothing: is it that there is nothing, or is the
// table of another kind? That it is can be told of a table that was read as a whole, which
// is not done with one above 1 MB. Where the rows may not be read, it is not.
func (t *opened) nothing(ctx context.Context, k kind) error {
	out, err := t.scan(ctx, &dynamodb.ScanInput{TableName: &t.name})
	switch {
	case err != nil:
		return ctx.Err()
	case len(out.Items) == 0, len(out.LastEvaluatedKey) > 0, slices.ContainsFunc(out.Items, k.fits):
		return nil
	}
	return t.not(ctx, k)
}

// noLocks is nothing for locks, which items of any keys may have: one row of permits, jobs or
// queues tells, whatever stands beside it. The list has read the whole table for its locks.
func (t *opened) noLocks(ctx context.Context) error {
	for _, k := range []kind{ofJobs, ofQueues} {
		if t.schema != k.schema {
			continue
		}
		found, err := t.scanFor(ctx, &dynamodb.ScanInput{TableName: &t.name}, k.fits)
		switch {
		case err != nil:
			return ctx.Err()
		case found:
			return usage("table %q has %s, which are no locks: see dynahold %s %s", t.name, k.words, k.look, t.name)
		}
	}
	return nil
}
