package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// A token is that of one query, however much of it is asked for at once, and has one
// length.
func TestTokensAreBoundToTheirQuery(t *testing.T) {
	t.Parallel()
	table, _ := shop(t, 10)
	filter := func(value any) repo.QueryOption {
		return repo.Filter(expression.Name("customer").NotEqual(expression.Value(value)))
	}
	queries := map[string][]repo.QueryOption{
		"all":            nil,
		"between":        {repo.SortBetween(0, 9)},
		"more between":   {repo.SortBetween(0, 99)},
		"a filter":       {filter("x")},
		"another":        {filter("y")},
		"of a map":       {filter(map[string]any{"a": 1, "b": 2, "c": []string{"d"}, "e": "f"})},
		"two":            {filter("x"), filter("y")},
		"both":           {filter("x"), repo.SortBetween(0, 9)},
		"of another":     {repo.Filter(expression.Name("placed").NotEqual(expression.Value("x")))},
		"from the end":   {repo.Descending()},
		"unexpired ones": {repo.Unexpired()},
	}
	length := 0
	for name, options := range queries {
		_, token, err := table.Page(t.Context(), "north", "", append(options, repo.Limit(2))...)
		rig.Is(t, err)
		if length == 0 {
			length = len(token)
		}
		if len(token) != length || token == "" {
			t.Errorf("%s: a token of %d bytes, not %d", name, len(token), length)
		}
		for other, options := range queries {
			for range 3 { // names and values have their numbers by chance
				_, _, err := table.Page(t.Context(), "north", token, append(options, repo.Limit(3), repo.PageSize(5), repo.Eventually(), repo.Unreadable(func(*repo.ItemError) {}))...)
				if refused := errors.Is(err, repo.ErrPage); refused != (name != other) || !refused && err != nil {
					t.Errorf("%s, then %s: %v", name, other, err)
				}
			}
		}
	}
}

// A limit may be any number, and an option that is none is told.
func TestOptionsOfReadsAreChecked(t *testing.T) {
	t.Parallel()
	table, _ := shop(t, 10)
	for _, n := range []int{1 << 20, 1<<20 + 1, math.MaxInt32, math.MaxInt} {
		all, next, err := table.Page(t.Context(), "north", "", repo.Limit(n))
		if len(all) != 10 || next != "" || err != nil {
			t.Errorf("Limit(%d): a page of %d, %q, %v", n, len(all), next, err)
		}
		found, err := numbers(table.Query(t.Context(), "north", repo.Limit(n)))
		if len(found) != 10 || err != nil {
			t.Errorf("Limit(%d): %v, %v", n, found, err)
		}
	}
	for name, none := range map[string]repo.QueryOption{"nil": nil, "nobody": repo.Unreadable(nil)} {
		_, err := numbers(table.Query(t.Context(), "north", repo.Descending(), none))
		rig.Is(t, err, repo.ErrConfig)
		_, err = numbers(table.Scan(t.Context(), none))
		rig.Is(t, err, repo.ErrConfig)
		if _, _, err = table.Page(t.Context(), "north", "", none); !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type note struct {
	Shop  string `dynamodbav:"shop" repo:"pk"`
	Title string `dynamodbav:"title" repo:"sk"`
}

// spelt is a client that sees whether a query has a text that DynamoDB takes in no condition of
// a key, and engines do.
type spelt struct {
	repo.Client
	empty bool
}

func (s *spelt) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	for _, v := range in.ExpressionAttributeValues {
		text, is := v.(*types.AttributeValueMemberS)
		s.empty = s.empty || is && text.Value == ""
	}
	return s.Client.Query(ctx, in, o...)
}

// Every text begins with nothing.
func TestAnEmptyPrefixIsAll(t *testing.T) {
	t.Parallel()
	f := fixture.Empty(t)
	client := &spelt{Client: f.Client}
	notes := rig.Must(repo.NewTable[note](client, f.Table, repo.TableConfig{}))(t)
	rig.Is(t, notes.EnsureTable(t.Context()))
	locked := rig.Must(pessimistic.New(notes, pessimistic.Config{}))(t)
	for _, title := range []string{"a", "b"} {
		rig.Must(locked.Create(t.Context(), note{"north", title}))(t)
	}
	n := 0
	for _, err := range notes.Query(t.Context(), "north", repo.SortPrefix("")) {
		rig.Is(t, err)
		n++
	}
	if n != 2 || client.empty {
		t.Errorf("%d notes, and an empty text was sent: %v", n, client.empty)
	}
}

// Items that cannot be read are told by their keys, and reading goes on past them where
// that is asked for: each is reported once, and no other item is missing.
func TestReadingGoesPastItemsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	table, f := shop(t, 10)
	bad := []int{0, 4, 5, 9}
	for _, n := range bad {
		key := rig.Must(table.EncodeKey(repo.Key{Partition: "north", Sort: n}))(t)
		key["customer"], key["placed"] = &types.AttributeValueMemberS{Value: "ann"}, &types.AttributeValueMemberN{Value: fmt.Sprintf("%d.5", 1000-n)}
		if n == 4 {
			key["placed"], key["writers"] = &types.AttributeValueMemberN{Value: "996"}, &types.AttributeValueMemberS{Value: "mine"}
		}
		_, err := f.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.Table, Item: key})
		rig.Is(t, err)
	}
	var reported []string
	past := repo.Unreadable(func(e *repo.ItemError) {
		rig.Is(t, e, repo.ErrSchema)
		reported = append(reported, fmt.Sprint(e.Key.Sort))
	})
	want := "[1 2 3 6 7 8] [0 4 5 9]"
	check := func(name string, n []int, err error, want string) {
		t.Helper()
		slices.Sort(n)
		slices.Sort(reported)
		if got := fmt.Sprint(n, reported); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
		reported = nil
	}
	n, err := numbers(table.Query(t.Context(), "north", past))
	check("Query", n, err, want)
	n, err = numbers(table.Query(t.Context(), "north", past, repo.Descending(), repo.Limit(4), repo.PageSize(2)))
	check("a limit", n, err, "[3 6 7 8] [4 5 9]")
	n, err = numbers(table.Scan(t.Context(), past, repo.Segments(3)))
	check("Scan", n, err, want)
	n, err = numbers(table.Query(t.Context(), "ann", past, repo.Index("byCustomer", "customer", "placed")))
	check("an index", n, err, "[2 6 8] [0 4 5 9]")
	for limit := 1; limit < 8; limit++ {
		for _, more := range [][]repo.QueryOption{{past}, {past, repo.PageSize(1)}, {past, repo.Descending()}} {
			var all []int
			for token, first := "", true; first || token != ""; first = false {
				var page []order
				page, token, err = table.Page(t.Context(), "north", token, append(more, repo.Limit(limit))...)
				for _, o := range page {
					all = append(all, o.N)
				}
				if err != nil {
					break
				}
			}
			check(fmt.Sprintf("pages of %d", limit), all, err, want)
		}
	}
	for n, err := range table.Query(t.Context(), "north") {
		var item *repo.ItemError
		if !errors.As(err, &item) || fmt.Sprint(item.Key) != `{"north" 0}` || n.N != 0 {
			t.Errorf("without the option: %v, %v", n, err)
		}
	}
	page, token, err := table.Page(t.Context(), "north", "", repo.SortBetween(1, 99), repo.Limit(3))
	if len(page) != 3 || token == "" || err != nil { // what can be read comes out
		t.Errorf("a page before such an item: %v, %v", page, err)
	}
	if _, _, err = table.Page(t.Context(), "north", token, repo.SortBetween(1, 99)); !errors.Is(err, repo.ErrSchema) || !strings.Contains(err.Error(), `{"north" 4}`) {
		t.Errorf("such an item: %v", err)
	}
	keys := make([]repo.Key, 11)
	for n := range keys {
		keys[n] = repo.Key{Partition: "north", Sort: n}
	}
	items, err := table.GetMany(t.Context(), keys...)
	var missing []int
	for n, item := range items {
		if item == nil {
			missing = append(missing, n)
		}
	}
	if fmt.Sprint(missing) != "[0 4 5 9 10]" || len(items) != 11 || !errors.Is(err, repo.ErrSchema) || strings.Count(err.Error(), "item {") != 4 {
		t.Errorf("GetMany: without %v, %v", missing, err)
	}
}
