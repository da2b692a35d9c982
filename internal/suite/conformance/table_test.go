package conformance_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// The TTL of a table that was there is its owner's: its items may have the
// attribute with another meaning, and would be deleted.
func TestEnsureTableLeavesTheTTLOfAnExistingTable(t *testing.T) {
	w := fixture.New(t)
	ttl := func(table string) string {
		out, err := w.Client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
		if err != nil {
			t.Fatal(err)
		}
		return aws.ToString(out.TimeToLiveDescription.AttributeName)
	}
	rig.Equal(t, ttl(w.Table), "expiresAt", "a new table has its TTL on")
	old := fixture.Empty(t)
	_, err := w.Client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &old.Table, BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("seq"), KeyType: types.KeyTypeRange}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("seq"), AttributeType: types.ScalarAttributeTypeN}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Items(t, w.Client).EnsureTable(t.Context()); err != nil {
		t.Error(err)
	}
	if got := ttl(old.Table); got != "" {
		t.Errorf("EnsureTable switched TTL on, on %q", got)
	}
}

func TestQueriesThatNarrowTheSortKey(t *testing.T) {
	w := fixture.New(t)
	table := w.Items(t, w.Client)
	r := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	for seq := range 5 {
		rig.Must(r.Create(t.Context(), fixture.Account{ID: "p", Seq: seq, At: 1}))(t)
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
	events := fixture.Empty(t)
	type event struct {
		ID   string `dynamodbav:"id" repo:"pk"`
		Kind string `dynamodbav:"kind" repo:"sk"`
	}
	texts := rig.Must(repo.NewTable[event](w.Client, events.Table, repo.TableConfig{}))(t)
	rig.Is(t, texts.EnsureTable(t.Context()))
	all := rig.Must(pessimistic.New(texts, pessimistic.Config{}))(t)
	for _, kind := range []string{"paid", "placed", "sent"} {
		rig.Must(all.Create(t.Context(), event{"o1", kind}))(t)
	}
	n := 0
	for e, err := range texts.Query(t.Context(), "o1", repo.SortPrefix("p")) {
		if n++; err != nil || e.Kind[0] != 'p' {
			t.Errorf("%+v, %v", e, err)
		}
	}
	rig.Equal(t, n, 2, "items")
}
