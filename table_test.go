package dynahold_test

import (
	"crypto/rand"
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// The TTL of a table that was there is its owner's: its items may have the
// attribute with another meaning, and would be deleted.
func TestEnsureTableLeavesTheTTLOfAnExistingTable(t *testing.T) {
	w := newWorld(t)
	ttl := func(table string) string {
		out, err := w.client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
		if err != nil {
			t.Fatal(err)
		}
		return aws.ToString(out.TimeToLiveDescription.AttributeName)
	}
	if got := ttl(w.table); got != "expiresAt" {
		t.Errorf("a new table has its TTL on %q", got)
	}
	old := w.at("test-" + rand.Text())
	_, err := w.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &old.table, BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("seq"), KeyType: types.KeyTypeRange}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("seq"), AttributeType: types.ScalarAttributeTypeN}},
	})
	if err != nil {
		t.Fatal(err)
	}
	old.drop(t)
	if err := old.repoTable(t, w.client).EnsureTable(t.Context()); err != nil {
		t.Error(err)
	}
	if got := ttl(old.table); got != "" {
		t.Errorf("EnsureTable switched TTL on, on %q", got)
	}
}

func TestQueriesThatNarrowTheSortKey(t *testing.T) {
	w := newWorld(t)
	table := w.repoTable(t, w.client)
	r := must(optimistic.New(table, optimistic.Config{}))(t)
	for seq := range 5 {
		must(r.Create(t.Context(), Account{ID: "p", Seq: seq, At: 1}))(t)
	}
	query := func(options ...repo.QueryOption) (seqs []int, err error) {
		for a, err := range table.Query(t.Context(), "p", options...) {
			if err != nil {
				return nil, err
			}
			seqs = append(seqs, a.Seq)
		}
		return seqs, nil
	}
	for name, c := range map[string]struct {
		options []repo.QueryOption
		want    []int
		err     error
	}{
		"all":              {nil, []int{0, 1, 2, 3, 4}, nil},
		"in pages":         {[]repo.QueryOption{repo.PageSize(2), repo.Eventually()}, []int{0, 1, 2, 3, 4}, nil},
		"between":          {[]repo.QueryOption{repo.SortBetween(1, 3), repo.Descending()}, []int{3, 2, 1}, nil},
		"texts":            {[]repo.QueryOption{repo.SortBetween("1", "3")}, nil, repo.ErrKey},
		"nothing":          {[]repo.QueryOption{repo.SortBetween(nil, nil)}, nil, repo.ErrKey},
		"upside down":      {[]repo.QueryOption{repo.SortBetween(3, 1)}, nil, repo.ErrKey},
		"prefix of number": {[]repo.QueryOption{repo.SortPrefix("1")}, nil, repo.ErrKey},
		"twice":            {[]repo.QueryOption{repo.SortBetween(1, 3), repo.SortBetween(2, 3)}, nil, repo.ErrConfig},
	} {
		if got, err := query(c.options...); !errors.Is(err, c.err) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, err, c.want, c.err)
		}
	}
	events := w.at("test-" + rand.Text())
	type event struct {
		ID   string `dynamodbav:"id" repo:"pk"`
		Kind string `dynamodbav:"kind" repo:"sk"`
	}
	texts := must(repo.NewTable[event](w.client, events.table, repo.TableConfig{}))(t)
	if err := texts.EnsureTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	events.drop(t)
	all := must(pessimistic.New(texts, pessimistic.Config{}))(t)
	for _, kind := range []string{"paid", "placed", "sent"} {
		must(all.Create(t.Context(), event{"o1", kind}))(t)
	}
	n := 0
	for e, err := range texts.Query(t.Context(), "o1", repo.SortPrefix("p")) {
		if n++; err != nil || e.Kind[0] != 'p' {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if n != 2 {
		t.Errorf("%d items, want 2", n)
	}
}
