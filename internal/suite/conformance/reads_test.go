package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// order is found by its shop, and by its customer and time.
type order struct {
	Shop     string `dynamodbav:"shop" repo:"pk"`
	N        int    `dynamodbav:"n" repo:"sk"`
	Customer string `dynamodbav:"customer"`
	Placed   int64  `dynamodbav:"placed"`
	Until    int64  `dynamodbav:"expiresAt,omitempty"`
	Version  int64  `dynamodbav:"version" repo:"version"`
}

var secret = []byte("sixteen bytes, or more")

// shop is a table of orders with an index over customers, and stubs, tombstones and
// locks between them that no reader may see.
func shop(t *testing.T, orders int) (*repo.Table[order], *fixture.Fixture) {
	f := fixture.Empty(t)
	attribute := func(name string, of types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: of}
	}
	key := func(pk, sk string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &pk, KeyType: types.KeyTypeHash}, {AttributeName: &sk, KeyType: types.KeyTypeRange}}
	}
	rig.Must(f.Client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &f.Table, BillingMode: types.BillingModePayPerRequest, KeySchema: key("shop", "n"),
		AttributeDefinitions: []types.AttributeDefinition{attribute("shop", "S"), attribute("n", "N"), attribute("customer", "S"), attribute("placed", "N")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{IndexName: aws.String("byCustomer"), KeySchema: key("customer", "placed"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}}},
	}))(t)
	table := rig.Must(repo.NewTable[order](f.Client, f.Table, repo.TableConfig{PageSecret: secret}))(t)
	r := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	for n := range orders {
		o := order{Shop: "north", N: n, Customer: []string{"ann", "bob"}[n%2], Placed: int64(1000 - n)}
		if n == 3 {
			o.Until = time.Now().Add(-time.Hour).Unix()
		}
		rig.Must(r.Create(t.Context(), o))(t)
	}
	locker := rig.Must(lockedread.New(table, lockedread.Config{}))(t)
	for n := range 3 { // keys that are locked before they have data
		stub := rig.Must(locker.AcquireOrCreate(t.Context(), repo.Key{Partition: "north", Sort: 1000 + n}))(t)
		t.Cleanup(func() { rig.Is(t, stub.Release(context.Background())) })
	}
	return table, f
}

// numbers are those of the orders that come out.
func numbers(items iter.Seq2[order, error]) (n []int, err error) {
	for o, err := range items {
		if err != nil {
			return nil, err
		}
		n = append(n, o.N)
	}
	return n, nil
}

// widened is a client whose first query gets the items of another one, of the whole partition.
type widened struct {
	repo.Client
	name, value string
	sent        int
}

func (w *widened) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := w.Client.Query(ctx, in, o...)
	if w.sent++; w.sent > 1 || err != nil {
		return out, err
	}
	all, err := w.Client.Query(ctx, &dynamodb.QueryInput{TableName: in.TableName, KeyConditionExpression: aws.String(w.name + " = :v"), ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberS{Value: w.value}}})
	if err == nil {
		out.Items = all.Items
	}
	return out, err
}

// The answer to another query of the same partition has items that were not asked for: it
// proves nothing, and the query is sent again.
func TestAnAnswerBeyondTheRangeOfAQuery(t *testing.T) {
	t.Parallel()
	_, f := shop(t, 8)
	for _, c := range []struct{ from, to int }{{0, 3}, {2, 4}, {5, 7}} {
		client := &widened{f.Client, "shop", "north", 0}
		orders := rig.Must(repo.NewTable[order](client, f.Table, repo.TableConfig{}))(t)
		got, err := numbers(orders.Query(t.Context(), "north", repo.SortBetween(c.from, c.to)))
		if err != nil || len(got) != c.to-c.from+1 || got[0] != c.from || client.sent != 2 {
			t.Errorf("from %d to %d: %v, %v, after %d queries", c.from, c.to, got, err, client.sent)
		}
	}
	g := fixture.Empty(t)
	client := &widened{g.Client, "id", "PATRON#ann", 0}
	parcels := rig.Must(repo.NewTable[parcel](client, g.Table, repo.TableConfig{}))(t)
	rig.Is(t, parcels.EnsureTable(t.Context()))
	for _, id := range []string{"a1", "b1", "b\U0010ffff", "c1"} {
		rig.Must(rig.Must(optimistic.New(parcels, optimistic.Config{}))(t).Create(t.Context(), parcel{Patron: "ann", ID: id}))(t)
	}
	var ids []string
	for p, err := range parcels.Query(t.Context(), "ann", repo.SortPrefix("b")) {
		rig.Is(t, err)
		ids = append(ids, p.ID)
	}
	if !slices.Equal(ids, []string{"b1", "b\U0010ffff"}) || client.sent != 2 {
		t.Errorf("with a prefix: %q, after %d queries", ids, client.sent)
	}
}

// anyOf is a filter of so many comparisons, of which so many again are within an IN each.
func anyOf(comparisons, in int) repo.QueryOption {
	cheap := expression.Name("placed").GreaterThan(expression.Value(994))
	all := cheap
	for range comparisons - 1 {
		all = all.Or(cheap)
	}
	values := make([]expression.OperandBuilder, in)
	for i := range values {
		values[i] = expression.Value(999 - i)
	}
	return repo.Filter(all.And(expression.Name("placed").In(values[0], values[1:]...)))
}

func TestQueriesOfTableAndIndex(t *testing.T) {
	t.Parallel()
	table, _ := shop(t, 8)
	cheap := expression.Name("placed").LessThan(expression.Value(997))
	for name, c := range map[string]struct {
		partition any
		options   []repo.QueryOption
		want      []int
		err       error
	}{
		"all":                 {"north", nil, []int{0, 1, 2, 3, 4, 5, 6, 7}, nil},
		"some":                {"north", []repo.QueryOption{repo.Limit(3)}, []int{0, 1, 2}, nil},
		"the last":            {"north", []repo.QueryOption{repo.Limit(2), repo.Descending()}, []int{7, 6}, nil},
		"filtered":            {"north", []repo.QueryOption{repo.Filter(cheap)}, []int{4, 5, 6, 7}, nil},
		"filtered twice":      {"north", []repo.QueryOption{repo.Filter(cheap), repo.Filter(expression.Name("customer").Equal(expression.Value("bob"))), repo.Limit(1)}, []int{5}, nil},
		"not expired":         {"north", []repo.QueryOption{repo.Unexpired(), repo.Limit(5)}, []int{0, 1, 2, 4, 5}, nil},
		"index":               {"bob", []repo.QueryOption{repo.Index("byCustomer", "customer", "placed")}, []int{7, 5, 3, 1}, nil},
		"index, narrowed":     {"ann", []repo.QueryOption{repo.Index("byCustomer", "customer", "placed"), repo.SortBetween(996, 1000)}, []int{4, 2, 0}, nil},
		"no such index":       {"ann", []repo.QueryOption{repo.Index("bySize", "customer")}, nil, repo.ErrSchema},
		"an index's no field": {"ann", []repo.QueryOption{repo.Index("byCustomer", "size")}, nil, repo.ErrSchema},
		"an index's keys":     {"ann", []repo.QueryOption{repo.Index("byCustomer", "customer", "placed", "n")}, nil, repo.ErrConfig},
		"two indexes":         {"ann", []repo.QueryOption{repo.Index("bySize", "customer"), repo.Index("byCustomer", "customer", "placed")}, nil, repo.ErrConfig},
		"a filter of a key":   {"north", []repo.QueryOption{repo.Filter(expression.Name("n").Equal(expression.Value(3)))}, nil, repo.ErrConfig},
		"an index's filtered": {"ann", []repo.QueryOption{repo.Index("byCustomer", "customer", "placed"), repo.Filter(cheap)}, nil, repo.ErrConfig},
		"the table's key":     {"ann", []repo.QueryOption{repo.Index("byCustomer", "customer", "placed"), repo.Filter(expression.Name("n").Equal(expression.Value(2)))}, []int{2}, nil},
		"an index's key":      {17, []repo.QueryOption{repo.Index("byCustomer", "customer", "placed")}, nil, repo.ErrKey},
		"nothing at most":     {"north", []repo.QueryOption{repo.Limit(0)}, nil, repo.ErrConfig},
		"an empty filter":     {"north", []repo.QueryOption{repo.Filter(expression.ConditionBuilder{})}, nil, repo.ErrConfig},
		"a misspelt filter":   {"north", []repo.QueryOption{repo.Filter(expression.Name("costumer").NotEqual(expression.Value("bob")))}, nil, repo.ErrConfig},
		"a filter by nothing": {"north", []repo.QueryOption{repo.Filter(expression.Name("customer").Equal(expression.Value(func() {})))}, nil, repo.ErrConfig},
		"as long as may be":   {"north", []repo.QueryOption{anyOf(149, 100)}, []int{1, 2, 3, 4, 5}, nil}, // 149 + 148 and AND, IN
		"too long a filter":   {"north", []repo.QueryOption{anyOf(150, 100)}, nil, repo.ErrConfig},
		"too long an IN":      {"north", []repo.QueryOption{anyOf(1, 101)}, nil, repo.ErrConfig},
		"segments":            {"north", []repo.QueryOption{repo.Segments(2)}, nil, repo.ErrConfig},
	} {
		if got, err := numbers(table.Query(t.Context(), c.partition, c.options...)); !errors.Is(err, c.err) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, err, c.want, c.err)
		}
	}
}

// lease is an item whose time to live is a time.Time: without one the zero time is stored.
type lease struct {
	Shop    string    `dynamodbav:"shop" repo:"pk"`
	N       int       `dynamodbav:"n" repo:"sk"`
	Until   time.Time `dynamodbav:"expiresAt,unixtime"`
	Version int64     `dynamodbav:"version" repo:"version"`
}

// DynamoDB removes nothing whose time to live was over five years ago: neither that is
// left out, nor what has none.
func TestWhatDoesNotExpireIsNotLeftOut(t *testing.T) {
	t.Parallel()
	f := fixture.Empty(t)
	table := rig.Must(repo.NewTable[lease](f.Client, f.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	leases := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	now := time.Now()
	for n, until := range []time.Time{{}, time.Unix(0, 0), now.AddDate(-6, 0, 0), now.AddDate(-4, 0, 0), now.Add(-time.Hour), now.Add(time.Hour)} {
		rig.Must(leases.Create(t.Context(), lease{Shop: "north", N: n, Until: until}))(t)
	}
	var got []int
	for l, err := range table.Query(t.Context(), "north", repo.Unexpired()) {
		rig.Is(t, err)
		got = append(got, l.N)
	}
	if want := []int{0, 1, 2, 5}; !slices.Equal(got, want) {
		t.Errorf("unexpired are %v, want %v", got, want)
	}
}

// endsScans is a client that ends its goroutine in one part of a scan, as a test's does by
// FailNow: the rows of that part were missing without a word.
type endsScans struct{ *dynamodb.Client }

func (c endsScans) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if *in.Segment == 1 {
		runtime.Goexit()
	}
	return c.Client.Scan(ctx, in, o...)
}

func TestScans(t *testing.T) {
	t.Parallel()
	table, f := shop(t, 40)
	for name, c := range map[string]struct {
		options []repo.QueryOption
		want    int
		err     error
	}{
		"all":            {nil, 40, nil},
		"in parts":       {[]repo.QueryOption{repo.Segments(4), repo.PageSize(3)}, 40, nil},
		"some, in parts": {[]repo.QueryOption{repo.Segments(4), repo.Limit(5)}, 5, nil},
		"filtered":       {[]repo.QueryOption{repo.Filter(expression.Name("customer").Equal(expression.Value("ann")))}, 20, nil},
		"index":          {[]repo.QueryOption{repo.Index("byCustomer", "customer", "placed"), repo.Unexpired()}, 39, nil},
		"in order":       {[]repo.QueryOption{repo.Descending()}, 0, repo.ErrConfig},
		"narrowed":       {[]repo.QueryOption{repo.SortBetween(1, 2)}, 0, repo.ErrConfig},
		"no parts":       {[]repo.QueryOption{repo.Segments(0)}, 0, repo.ErrConfig},
		"no such index":  {[]repo.QueryOption{repo.Index("bySize", "customer"), repo.Segments(3)}, 0, repo.ErrSchema},
		"too long":       {[]repo.QueryOption{anyOf(150, 100)}, 0, repo.ErrConfig},
		"misspelt":       {[]repo.QueryOption{repo.Filter(expression.Name("Placed").LessThan(expression.Value(1)))}, 0, repo.ErrConfig},
	} {
		got, err := numbers(table.Scan(t.Context(), c.options...))
		slices.Sort(got)
		if !errors.Is(err, c.err) || len(slices.Compact(got)) != c.want {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, err, c.want, c.err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := numbers(table.Scan(gone, repo.Segments(3)))
	rig.Is(t, err, context.Canceled)
	_, err = numbers(rig.Must(repo.NewTable[order](endsScans{f.Client}, f.Table, repo.TableConfig{}))(t).Scan(t.Context(), repo.Segments(3)))
	if err == nil {
		t.Error("rows are missing without a word")
	}
	poor := rig.Must(repo.NewTable[order](struct{ repo.Client }{f.Client}, f.Table, repo.TableConfig{}))(t)
	_, err = numbers(poor.Scan(t.Context()))
	rig.Is(t, err, repo.ErrConfig)
	_, err = poor.GetMany(t.Context(), repo.Key{Partition: "north", Sort: 1})
	rig.Is(t, err, repo.ErrConfig)
}

func TestPages(t *testing.T) {
	t.Parallel()
	table, f := shop(t, 10)
	byCustomer := repo.Index("byCustomer", "customer", "placed")
	for name, c := range map[string]struct {
		partition string
		options   []repo.QueryOption
		want      string
	}{
		"all":        {"north", nil, "[0 1 2 3 4 5 6 7 8 9]"},
		"by four":    {"north", []repo.QueryOption{repo.Limit(4)}, "[0 1 2 3] [4 5 6 7] [8 9]"},
		"by five":    {"north", []repo.QueryOption{repo.Limit(5), repo.Descending()}, "[9 8 7 6 5] [4 3 2 1 0]"},
		"small ones": {"north", []repo.QueryOption{repo.Limit(4), repo.PageSize(1), repo.Unexpired()}, "[0 1 2 4] [5 6 7 8] [9]"},
		"index":      {"ann", []repo.QueryOption{byCustomer, repo.Limit(2)}, "[8 6] [4 2] [0]"},
		"nothing":    {"south", nil, "[]"},
	} {
		var pages []string
		for token := ""; ; {
			orders, next, err := table.Page(t.Context(), c.partition, token, c.options...)
			rig.Is(t, err)
			of := make([]int, len(orders))
			for i, o := range orders {
				of[i] = o.N
			}
			pages = append(pages, fmt.Sprint(of))
			if token = next; token == "" || err != nil {
				break
			}
		}
		rig.Equal(t, strings.Join(pages, " "), c.want, "%s", name)
	}
	_, token, err := table.Page(t.Context(), "north", "", repo.Limit(2))
	rig.Is(t, err)
	_, again, err := table.Page(t.Context(), "north", "", repo.Limit(2))
	rig.Is(t, err)
	if token == again || strings.Contains(token, "north") {
		t.Errorf("the token %q shows where it points", token)
	}
	other := rig.Must(repo.NewTable[order](f.Client, f.Table, repo.TableConfig{PageSecret: []byte("another secret that nobody knows")}))(t)
	open := rig.Must(repo.NewTable[order](f.Client, f.Table, repo.TableConfig{}))(t)
	_, err = repo.NewTable[order](f.Client, f.Table, repo.TableConfig{PageSecret: []byte("of 15 bytes....")})
	rig.Is(t, err, repo.ErrConfig)
	for name, c := range map[string]struct {
		table     *repo.Table[order]
		partition string
		token     string
		options   []repo.QueryOption
		want      error
	}{
		"altered":         {table, "north", token[:len(token)-2] + "xx", nil, repo.ErrPage},
		"no token":        {table, "north", "3", nil, repo.ErrPage},
		"no base64":       {table, "north", "!", nil, repo.ErrPage},
		"other partition": {table, "south", token, nil, repo.ErrPage},
		"other order":     {table, "north", token, []repo.QueryOption{repo.Descending()}, repo.ErrPage},
		"other index":     {table, "north", token, []repo.QueryOption{byCustomer}, repo.ErrPage},
		"other bounds":    {table, "north", token, []repo.QueryOption{repo.SortBetween(0, 9)}, repo.ErrPage},
		"a filter":        {table, "north", token, []repo.QueryOption{repo.Filter(expression.Name("customer").Equal(expression.Value("ann")))}, repo.ErrPage},
		"unexpired":       {table, "north", token, []repo.QueryOption{repo.Unexpired()}, repo.ErrPage},
		"a line feed":     {table, "north", token[:9] + "\n" + token[9:], nil, repo.ErrPage},
		"a return at end": {table, "north", token + "\r\n", nil, repo.ErrPage},
		"other secret":    {other, "north", token, nil, repo.ErrPage},
		"no secret":       {open, "north", "", nil, repo.ErrConfig},
	} {
		_, _, err := c.table.Page(t.Context(), c.partition, c.token, c.options...)
		t.Run(name, func(t *testing.T) { rig.Is(t, err, c.want) })
	}
}

// batches is a client whose service leaves most of each batch over.
type batches struct {
	*dynamodb.Client
	sent int
}

func (b *batches) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	b.sent++
	most := 40
	if b.sent%2 == 1 {
		most = 0 // throttled
	}
	asked, left := map[string]types.KeysAndAttributes{}, map[string]types.KeysAndAttributes{}
	for name, of := range in.RequestItems {
		n := min(most, len(of.Keys))
		asked[name] = types.KeysAndAttributes{Keys: of.Keys[:n], ConsistentRead: of.ConsistentRead}
		if n < len(of.Keys) {
			left[name] = types.KeysAndAttributes{Keys: of.Keys[n:], ConsistentRead: of.ConsistentRead}
		}
		if n == 0 {
			asked[name] = types.KeysAndAttributes{Keys: of.Keys[:1], ConsistentRead: of.ConsistentRead}
		}
	}
	less := *in
	less.RequestItems = asked
	out, err := b.Client.BatchGetItem(ctx, &less, o...)
	if err == nil {
		out.UnprocessedKeys = left
		if most == 0 {
			out.Responses = nil
		}
	}
	return out, err
}

func TestGetMany(t *testing.T) {
	t.Parallel()
	_, f := shop(t, 130)
	client := &batches{Client: f.Client}
	table := rig.Must(repo.NewTable[order](client, f.Table, repo.TableConfig{}))(t)
	var keys []repo.Key
	for n := range 260 { // in an order of their own, half of them missing, some twice
		keys = append(keys, repo.Key{Partition: "north", Sort: float64(n*7%260) + 0.0})
	}
	keys = append(keys, repo.Key{Partition: "north", Sort: 1000}, repo.Key{Partition: "north", Sort: 5}) // a stub, and one again
	items, err := table.GetMany(t.Context(), keys...)
	rig.Is(t, err)
	if len(items) != len(keys) {
		t.Fatalf("%d items for %d keys", len(items), len(keys))
	}
	for i, item := range items {
		n := 1000
		switch sort := keys[i].Sort.(type) {
		case float64:
			n = int(sort)
		case int:
			n = sort
		}
		if (item != nil) != (n < 130) || item != nil && item.N != n {
			t.Errorf("key %v: %+v", keys[i], item)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = table.GetMany(ctx, keys...)
	rig.Is(t, err, context.Canceled)
	_, err = table.GetMany(t.Context(), repo.Key{Partition: "north"})
	rig.Is(t, err, repo.ErrKey)
	if none, err := table.GetMany(t.Context()); err != nil || len(none) != 0 {
		t.Errorf("no keys: %v, %v", none, err)
	}
}

// Where a filter leaves few of many, they cost few requests: pages double, unless their
// size was asked for.
func TestFewOfManyCostFewRequests(t *testing.T) {
	t.Parallel()
	table, f := shop(t, 40)
	last := repo.Filter(expression.Name("placed").Equal(expression.Value(1000 - 39)))
	for name, c := range map[string]struct {
		options  []repo.QueryOption
		requests int64
	}{
		"pages that grow":   {[]repo.QueryOption{last, repo.Limit(1)}, 6}, // 1, 2, 4, 8, 16, 32
		"pages of one size": {[]repo.QueryOption{last, repo.Limit(1), repo.PageSize(10)}, 4},
	} {
		f.Count.Reset()
		got, err := numbers(table.Query(t.Context(), "north", c.options...))
		if n := int64(f.Count.Total()); err != nil || !slices.Equal(got, []int{39}) || n != c.requests {
			t.Errorf("%s: %v, %v, %d requests, want %d", name, got, err, n, c.requests)
		}
		f.Count.Reset()
		page, next, err := table.Page(t.Context(), "north", "", c.options...)
		if n := int64(f.Count.Total()); err != nil || len(page) != 1 || next != "" || n > c.requests+1 {
			t.Errorf("%s: a page of %d, next %q, %v, %d requests", name, len(page), next, err, n)
		}
	}
}

// A program keeps its options: what one query adds to a filter is not another's.
func TestOptionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	table, _ := shop(t, 8)
	cheap := repo.Filter(expression.Name("placed").LessThan(expression.Value(997)))
	bobs := repo.Filter(expression.Name("customer").Equal(expression.Value("bob")))
	for _, c := range []struct {
		options []repo.QueryOption
		want    []int
	}{
		{[]repo.QueryOption{cheap, bobs}, []int{5, 7}},
		{[]repo.QueryOption{bobs}, []int{1, 3, 5, 7}},
		{[]repo.QueryOption{cheap}, []int{4, 5, 6, 7}},
	} {
		found := table.Query(t.Context(), "north", c.options...)
		for range 2 { // what Query returns, too
			if got, err := numbers(found); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
		}
	}
}

// What a stream's consumer sees of an item's life, locks left out.
func TestImagesOfAStream(t *testing.T) {
	t.Parallel()
	f := fixture.New(t)
	table := f.Items(t, f.Client)
	r := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	events := rig.Must(nolock.New(table, nolock.Config{}))(t)
	locker := f.Locker(t, f.Client, lockedread.Config{})
	key := repo.Key{Partition: "p", Sort: 1}
	image := func() map[string]types.AttributeValue { return f.Raw(t, key) }
	var hold *lockedread.Held[fixture.Account]
	before := image()
	for _, step := range []struct {
		name                  string
		do                    func() error
		was, is, changed, bad bool
	}{
		{"a stub", func() (err error) {
			hold, err = locker.AcquireOrCreate(t.Context(), key)
			return err
		}, false, false, false, false},
		{"released", func() error { return hold.Release(t.Context()) }, false, false, false, false},
		{"created", func() error {
			_, err := r.Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1, Balance: 1})
			return err
		}, false, true, true, false},
		{"locked", func() (err error) { hold, err = locker.Acquire(t.Context(), key); return err }, true, true, false, false},
		{"unlocked", func() error { return hold.Release(t.Context()) }, true, true, false, false},
		{"changed", func() error { _, err := r.Update(t.Context(), key, fixture.AddOne); return err }, true, true, true, false},
		{"a tombstone", func() error { return events.DeleteAt(t.Context(), key, 9) }, true, false, true, false},
	} {
		rig.Is(t, step.do())
		after := image()
		was, is, changed, err := table.Images(before, after)
		rig.Is(t, err)
		if (was != nil) != step.was || (is != nil) != step.is || changed != step.changed {
			t.Errorf("%s: %+v, %+v, changed %v", step.name, was, is, changed)
		}
		before = after
	}
	if _, _, _, err := table.Images(nil, map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "p"}, "seq": &types.AttributeValueMemberN{Value: "1"},
		"lockedBy": &types.AttributeValueMemberBOOL{}}); !errors.Is(err, repo.ErrSchema) {
		t.Errorf("a foreign image: %v", err)
	}
}
