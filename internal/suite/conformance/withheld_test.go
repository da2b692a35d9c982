package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// patient has fields that not every value fits.
type patient struct {
	ID     string            `dynamodbav:"id" repo:"pk"`
	Seq    int               `dynamodbav:"seq" repo:"sk"`
	Born   time.Time         `dynamodbav:"born,omitempty"`
	Seen   time.Time         `dynamodbav:"seen,unixtime,omitempty"`
	Ward   int8              `dynamodbav:"ward"`
	Weight float32           `dynamodbav:"weight"`
	Sum    [2]byte           `dynamodbav:"sum"`
	Rooms  map[int]int       `dynamodbav:"rooms,omitempty"`
	Visits []visit           `dynamodbav:"visits,omitempty"`
	Own    outspoken         `dynamodbav:"own"`
	Names  map[string]string `dynamodbav:"names,omitempty"`
	Marks  []string          `dynamodbav:"marks,stringset,omitempty"`
	At     int64             `dynamodbav:"at" repo:"eventtime"`
	N      int64             `dynamodbav:"version" repo:"version"`
}

type visit struct {
	At time.Time `dynamodbav:"at"`
}

// outspoken decodes itself, and says what it does not like.
type outspoken struct{ text string }

func (o *outspoken) UnmarshalDynamoDBAttributeValue(v types.AttributeValue) error {
	s, ok := v.(*types.AttributeValueMemberS)
	switch {
	case !ok:
		return nil
	case strings.HasPrefix(s.Value, "panic"):
		panic("bad value " + s.Value)
	}
	return fmt.Errorf("bad value %s: %w", s.Value, io.ErrUnexpectedEOF)
}

func (o outspoken) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	if o.text != "" {
		return nil, fmt.Errorf("bad value %s: %w", o.text, io.ErrUnexpectedEOF)
	}
	return &types.AttributeValueMemberNULL{Value: true}, nil
}

// What is in an item is in no error: neither in its text nor in that of what it wraps.
// All errors name the item, and which attribute it is.
func TestErrorsHaveNoValues(t *testing.T) {
	t.Parallel()
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	r := rig.New(t)
	table := rig.Must(repo.NewTable[patient](r.Client, r.Table, repo.TableConfig{AnyAttribute: true, PageSecret: []byte("sixteen bytes at least")}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	for name, c := range map[string]struct {
		attribute string
		value     types.AttributeValue
		is        error
	}{
		"a text for a time":             {"born", text("hush"), nil},
		"a text for a time in seconds":  {"seen", text("hush"), nil},
		"a fraction for seconds":        {"seen", number("47110815.5"), nil},
		"a text for a number":           {"ward", text("hush"), nil},
		"a number that is too large":    {"ward", number("47110815"), nil},
		"a fraction for an integer":     {"ward", number("47110815.5"), nil},
		"a number beyond a float":       {"weight", number("47110815e90"), nil},
		"bytes longer than their array": {"sum", &types.AttributeValueMemberB{Value: []byte("hush")}, nil},
		"names for numbers":             {"rooms", &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"hush": number("1")}}, nil},
		"a text for a time in a list":   {"visits", &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"at": text("hush")}}}}, nil},
		"what decodes itself":           {"own", text("hush"), io.ErrUnexpectedEOF},
		"what decodes itself, loudly":   {"own", text("panic hush"), nil},
		"a set for texts":               {"names", &types.AttributeValueMemberSS{Value: []string{"hush"}}, nil},
		"a foreign lock":                {"lockTime", text("hush"), nil},
		"a foreign end of a lock":       {"lockTime", number("-47110815"), nil},
		"foreign ids":                   {"writers", text("hush"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			key := repo.Key{Partition: t.Name(), Sort: 7}
			item := rig.Must(table.EncodeKey(key))(t)
			item["version"], item["at"] = number("1"), number("1")
			item[c.attribute] = c.value
			_, err := r.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &r.Table, Item: item})
			rig.Is(t, err)
			for call, err := range readsOf(t, table, key, item) {
				if !errors.Is(err, repo.ErrSchema) || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("%s: %v", call, err)
					continue
				}
				withheld(t, call, err)
				if all := err.Error(); !strings.Contains(all, "\""+c.attribute+"\"") || !strings.Contains(all, key.String()) {
					t.Errorf("%s: %v: it names not both %q and %v", call, err, c.attribute, key)
				}
				var named *repo.ItemError
				if found := errors.As(err, &named); !found && !strings.HasPrefix(c.attribute, "lock") && c.attribute != "writers" || found && named.Key.Partition != key.Partition {
					t.Errorf("%s: %#v", call, named)
				}
			}
		})
	}
	t.Run("what encodes itself", func(t *testing.T) {
		_, err := table.Encode(patient{ID: "x", Own: outspoken{"hush"}})
		rig.Is(t, err, repo.ErrSchema, io.ErrUnexpectedEOF)
		withheld(t, "Encode", err)
	})
	t.Run("what the service refuses", func(t *testing.T) {
		for call, err := range refusedOf(t, table, []string{"hush", "hush"}) {
			if rig.Is(t, err, repo.ErrSchema); !strings.Contains(err.Error(), "duplicates") {
				t.Errorf("%s: %v", call, err)
			}
			withheld(t, call, err)
		}
	})
}

// refusedOf are the errors of calls that write what the service refuses.
func refusedOf(t *testing.T, table *repo.Table[patient], marks []string) map[string]error {
	ctx, errs := t.Context(), map[string]error{}
	locked := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	free := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	events := rig.Must(nolock.New(table, nolock.Config{}))(t)
	mark := func(_ context.Context, p *patient) error { p.Marks = marks; return nil }
	for name, r := range map[string]repo.Repository[patient]{"pessimistic": locked, "optimistic": free, "nolock": events} {
		_, err := r.Create(ctx, patient{ID: name, At: 1})
		rig.Is(t, err)
		_, errs[name+".Create"] = r.Create(ctx, patient{ID: name + " refused", At: 1, Marks: marks})
		_, errs[name+".Update"] = r.Update(ctx, repo.Key{Partition: name, Sort: 0}, mark)
	}
	errs["nolock.Put"] = events.Put(ctx, patient{ID: "refused", At: 1, Marks: marks})
	errs["a transaction"] = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		for _, id := range []string{"optimistic", "nolock"} {
			if _, err := free.In(tx).Update(ctx, repo.Key{Partition: id, Sort: 0}, mark); err != nil {
				return err
			}
		}
		return nil
	})
	return errs
}

// withheld looks for values in an error and in all that it wraps.
func withheld(t *testing.T, call string, err error) {
	t.Helper()
	if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, "hush") || strings.Contains(text, "47110815") {
		t.Errorf("%s: %s", call, text)
	}
	switch e := err.(type) { //nolint:errorlint // all that it wraps is looked at
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			withheld(t, call, inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			withheld(t, call, inner)
		}
	}
}

// readsOf are the errors of all calls that decode an item.
func readsOf(t *testing.T, table *repo.Table[patient], key repo.Key, image map[string]types.AttributeValue) map[string]error {
	ctx, errs := t.Context(), map[string]error{}
	same := func(context.Context, *patient) error { return nil }
	_, errs["Get"] = table.Get(ctx, key)
	_, errs["GetMany"] = table.GetMany(ctx, key)
	for _, err := range table.Query(ctx, key.Partition) {
		errs["Query"] = err
	}
	for _, err := range table.Scan(ctx, repo.Filter(expression.Name("id").Equal(expression.Value(key.Partition)))) {
		errs["Scan"] = err
	}
	_, _, errs["Page"] = table.Page(ctx, key.Partition, "")
	_, errs["Decode"] = table.Decode(image)
	_, _, _, errs["Images"] = table.Images(nil, image)

	locked := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	free := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	events := rig.Must(nolock.New(table, nolock.Config{}))(t)
	handles := rig.Must(lockedread.New(table, lockedread.Config{}))(t)
	_, errs["pessimistic.Update"] = locked.Update(ctx, key, same)
	_, errs["optimistic.Update"] = free.Update(ctx, key, same)
	_, errs["nolock.Update"] = events.Update(ctx, key, same)
	_, errs["optimistic.Apply"] = free.Apply(ctx, key, expression.Set(expression.Name("x"), expression.Value(1)), expression.Name("id").AttributeNotExists())
	_, errs["Acquire"] = handles.Acquire(ctx, key)
	errs["a transaction"] = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		_, err := free.In(tx).Get(ctx, key)
		return err
	})
	return errs
}
