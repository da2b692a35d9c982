package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// mixed is a table with an index over types: one partition has a receipt among every
// ten items, the others are invoices, an item of no type, and a tombstone.
func mixed(t *testing.T) (*fixture.Fixture, *repo.Table[receipt]) {
	t.Helper()
	f := fixture.Empty(t)
	attribute := func(name string, of types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: of}
	}
	key := func(pk, sk string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &pk, KeyType: types.KeyTypeHash}, {AttributeName: &sk, KeyType: types.KeyTypeRange}}
	}
	rig.Must(f.Client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &f.Table, BillingMode: types.BillingModePayPerRequest, KeySchema: key("id", "seq"),
		AttributeDefinitions: []types.AttributeDefinition{attribute("id", "S"), attribute("seq", "N"), attribute("kind", "S"), attribute("at", "N")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
			{IndexName: aws.String("byKind"), KeySchema: key("kind", "at"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}},
			{IndexName: aws.String("byTime"), KeySchema: key("id", "at"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}},
		},
	}))(t)
	invoices := rig.Must(repo.NewTable[invoice](f.Client, f.Table, repo.TableConfig{PageSecret: secret}))(t)
	receipts := rig.Must(repo.NewTable[receipt](f.Client, f.Table, repo.TableConfig{PageSecret: secret}))(t)
	i := rig.Must(optimistic.New(invoices, optimistic.Config{}))(t)
	r := rig.Must(optimistic.New(receipts, optimistic.Config{}))(t)
	for n := range 60 {
		if n%10 == 9 {
			rig.Must(r.Create(t.Context(), receipt{ID: "p", N: n, At: int64(n + 1)}))(t)
		} else {
			rig.Must(i.Create(t.Context(), invoice{ID: "p", N: n, At: int64(n + 1)}))(t)
		}
	}
	stranger := rig.Must(receipts.EncodeKey(repo.Key{Partition: "p", Sort: 100}))(t)
	stranger["at"] = &types.AttributeValueMemberN{Value: "1"}
	rig.Must(f.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.Table, Item: stranger}))(t)
	rig.Is(t, rig.Must(nolock.New(receipts, nolock.Config{}))(t).DeleteAt(t.Context(), repo.Key{Partition: "p", Sort: 101}, 1))
	f.Count.Reset()
	return f, receipts
}

func TestOtherTypesDoNotComeOutOfReads(t *testing.T) {
	t.Parallel()
	f, receipts := mixed(t)
	ctx := t.Context()
	all := []int{9, 19, 29, 39, 49, 59}
	late := repo.Filter(expression.Name("at").GreaterThan(expression.Value(30)))
	for name, c := range map[string]struct {
		items    iter.Seq2[receipt, error]
		want     []int
		requests int64
	}{
		"Query":                          {receipts.Query(ctx, "p"), all, 1},
		"Query with a filter":            {receipts.Query(ctx, "p", late), []int{39, 49, 59}, 1},
		"Query backwards":                {receipts.Query(ctx, "p", repo.Descending(), repo.Limit(2)), []int{59, 49}, 5},
		"Query, the first":               {receipts.Query(ctx, "p", repo.Limit(1)), []int{9}, 4}, // pages of 1, 2, 4 and 8
		"Query of pages of a given size": {receipts.Query(ctx, "p", repo.Limit(1), repo.PageSize(5)), []int{9}, 2},
		"Query of a range":               {receipts.Query(ctx, "p", repo.SortBetween(10, 40)), []int{19, 29, 39}, 1},
		"Index over types":               {receipts.Query(ctx, "receipt", repo.Index("byKind", "kind", "at")), all, 1},
		"Index over types, of another":   {receipts.Query(ctx, "invoice", repo.Index("byKind", "kind", "at")), nil, 1},
		"Index over times":               {receipts.Query(ctx, "p", repo.Index("byTime", "id", "at")), all, 1},
		"Scan":                           {receipts.Scan(ctx), all, 1},
		"Scan with a filter":             {receipts.Scan(ctx, late), []int{39, 49, 59}, 1},
		"Scan of segments":               {receipts.Scan(ctx, repo.Segments(3)), all, 3},
		"Scan of an index":               {receipts.Scan(ctx, repo.Index("byKind", "kind", "at")), all, 1},
	} {
		f.Count.Reset()
		var got []int
		for r, err := range c.items {
			if err != nil || r.Kind != "receipt" {
				t.Fatalf("%s: %+v, %v", name, r, err)
			}
			got = append(got, r.N)
		}
		if name[:4] == "Scan" {
			slices.Sort(got)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if n := int64(f.Count.Total()); n > c.requests {
			t.Errorf("%s: %d requests, want %d", name, n, c.requests)
		}
	}
	var paged []int
	for token := ""; ; {
		page, next, err := receipts.Page(ctx, "p", token, repo.Limit(4))
		rig.Is(t, err)
		for _, r := range page {
			paged = append(paged, r.N)
		}
		if token = next; token == "" {
			break
		}
	}
	if !slices.Equal(paged, all) {
		t.Errorf("Page: %v", paged)
	}
	many := rig.Must(receipts.GetMany(ctx, repo.Key{Partition: "p", Sort: 9}, repo.Key{Partition: "none", Sort: 1}, repo.Key{Partition: "p", Sort: 101}))(t)
	if many[0] == nil || many[0].N != 9 || many[1] != nil || many[2] != nil {
		t.Errorf("GetMany: %v", many)
	}
}

// A consumer of a stream gets the records of its own type.
func TestImagesOfOtherTypesAreNone(t *testing.T) {
	t.Parallel()
	_, invoices, receipts := shared(t)
	i := rig.Must(invoices.Encode(invoice{ID: "a", N: 1, Total: 5}))(t)
	r := rig.Must(receipts.Encode(receipt{ID: "a", N: 1, Paid: 5}))(t)
	for name, c := range map[string]struct {
		before, after map[string]types.AttributeValue
		was, is       bool
	}{
		"another":           {i, i, false, false},
		"another is made":   {nil, i, false, false},
		"another is gone":   {i, nil, false, false},
		"another's place":   {i, r, false, true},
		"another after it":  {r, i, true, false},
		"one of its own":    {nil, r, false, true},
		"no type whatever":  {nil, rig.Must(receipts.EncodeKey(repo.Key{Partition: "a", Sort: 1}))(t), false, false},
		"another, not ours": {nil, map[string]types.AttributeValue{"kind": i["kind"], "writers": i["kind"]}, false, false},
	} {
		was, is, changed, err := receipts.Images(c.before, c.after)
		if err != nil || (was != nil) != c.was || (is != nil) != c.is || changed != (c.was || c.is) {
			t.Errorf("%s: %v, %v, %v, %v", name, was, is, changed, err)
		}
	}
	parsed := rig.Must(repo.ParseImage([]byte(`{"id":{"S":"a"},"seq":{"N":"1"},"kind":{"S":"invoice"}}`)))(t)
	if got, err := receipts.Decode(parsed); !errors.As(err, new(*repo.TypeError)) || got != (receipt{}) {
		t.Errorf("Decode gives %+v, %v", got, err)
	}
}

// patron and parcel share partitions: a patron's has its parcels.
type patron struct {
	ID      string `dynamodbav:"id" repo:"pk,prefix=PATRON#"`
	Part    string `dynamodbav:"part" repo:"sk,prefix=PROFILE#"`
	Version int64  `dynamodbav:"version" repo:"version"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
}

type parcel struct {
	Patron  string `dynamodbav:"id" repo:"pk,prefix=PATRON#"`
	ID      string `dynamodbav:"part" repo:"sk,prefix=PARCEL#"`
	Grams   int64  `dynamodbav:"grams"`
	Version int64  `dynamodbav:"version" repo:"version"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
}

func TestKeysHavePrefixesInTheTableAlone(t *testing.T) {
	t.Parallel()
	for _, s := range fixture.StrategiesOf[parcel]() {
		t.Run(s.Name, func(t *testing.T) {
			f := fixture.Empty(t)
			parcels := rig.Must(repo.NewTable[parcel](f.Client, f.Table, repo.TableConfig{PageSecret: secret}))(t)
			patrons := rig.Must(repo.NewTable[patron](f.Client, f.Table, repo.TableConfig{}))(t)
			rig.Is(t, parcels.EnsureTable(t.Context()))
			r, ctx, key := s.Open(t, parcels), t.Context(), repo.Key{Partition: "ann", Sort: "7"}
			rig.Must(rig.Must(optimistic.New(patrons, optimistic.Config{}))(t).Create(ctx, patron{ID: "ann", Part: "main", At: 1}))(t)
			made := rig.Must(r.Create(ctx, parcel{Patron: "ann", ID: "7", At: 1}))(t)
			heavier := func(_ context.Context, p *parcel) error { p.Grams++; p.At++; return nil }
			changed := rig.Must(r.Update(ctx, key, heavier))(t)
			if made.Patron != "ann" || made.ID != "7" || changed.Patron != "ann" || changed.ID != "7" || changed.Grams != 1 {
				t.Errorf("made %+v, changed %+v", made, changed)
			}
			upserted := rig.Must(r.Upsert(ctx, repo.Key{Partition: "ann", Sort: "8"}, heavier))(t)
			if upserted.Patron != "ann" || upserted.ID != "8" || rig.Must(r.Get(ctx, repo.Key{Partition: "ann", Sort: "8"}))(t).Grams != 1 {
				t.Errorf("upserted %+v", upserted)
			}
			raw := f.Item(t, map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "PATRON#ann"}, "part": &types.AttributeValueMemberS{Value: "PARCEL#7"}})
			if got, err := parcels.Decode(raw); err != nil || got != rig.Must(r.Get(ctx, key))(t) {
				t.Errorf("stored is %v, %v", raw, err)
			}
			for name, items := range map[string]iter.Seq2[parcel, error]{
				"Query":       parcels.Query(ctx, "ann"),
				"SortPrefix":  parcels.Query(ctx, "ann", repo.SortPrefix("")),
				"SortBetween": parcels.Query(ctx, "ann", repo.SortBetween("0", "9")),
				"Scan":        parcels.Scan(ctx),
			} {
				var ids []string
				for p, err := range items {
					rig.Is(t, err)
					ids = append(ids, p.Patron+" "+p.ID)
				}
				if slices.Sort(ids); !slices.Equal(ids, []string{"ann 7", "ann 8"}) {
					t.Errorf("%s: %v", name, ids)
				}
			}
			page, next, err := parcels.Page(ctx, "ann", "", repo.Limit(1))
			second, end, again := parcels.Page(ctx, "ann", next, repo.Limit(1))
			if err != nil || again != nil || end != "" || len(page) != 1 || len(second) != 1 || page[0].ID != "7" || second[0].ID != "8" {
				t.Errorf("pages %v, %v, %v, %v", page, err, second, again)
			}
			if _, err := r.Create(ctx, parcel{Patron: "", ID: "9", At: 1}); !errors.Is(err, repo.ErrKey) {
				t.Errorf("an empty id: %v", err)
			}
			_, err = r.Create(ctx, parcel{Patron: "ann", ID: "7", At: 9})
			if want := fmt.Sprintf("%v: {\"ann\" \"7\"} in table %q", repo.ErrExists, f.Table); err == nil || err.Error() != want {
				t.Errorf("an error says %v, want %s", err, want)
			}
			rig.Is(t, r.Delete(ctx, key))
			if _, err := r.Get(ctx, key); !errors.Is(err, repo.ErrNotFound) {
				t.Errorf("after Delete: %v", err)
			}
			profile := rig.Must(patrons.Encode(patron{ID: "ann", Part: "main"}))(t)
			if p, err := parcels.Decode(profile); !errors.Is(err, repo.ErrSchema) || p != (parcel{}) {
				t.Errorf("a key with another prefix: %+v, %v", p, err)
			}
			if was, is, changed, err := parcels.Images(nil, profile); was != nil || is != nil || changed || err != nil {
				t.Errorf("its images: %v, %v, %v, %v", was, is, changed, err)
			}
			if got := parcels.DecodeKey(raw); !reflect.DeepEqual(got, key) {
				t.Errorf("its key is %v", got)
			}
		})
	}
}
