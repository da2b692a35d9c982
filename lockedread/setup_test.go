package lockedread_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

type stock struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Count int    `dynamodbav:"count"`
}

var key = repo.Key{Partition: "apple"}

func TestMain(m *testing.M) { rig.MainOr(m, hold) }

// bench is a table with one item.
type bench struct{ *rig.Rig }

func newBench(t testing.TB) bench {
	t.Helper()
	b := bench{rig.New(t)}
	rig.Is(t, b.tableOf(t).EnsureTable(t.Context()))
	b.put(t, nil)
	b.Count.Reset()
	return b
}

func (b bench) tableOf(t testing.TB) *repo.Table[stock] {
	t.Helper()
	return rig.Must(repo.NewTable[stock](b.Client, b.Table, repo.TableConfig{}))(t)
}

func (b bench) locker(t testing.TB, cfg lockedread.Config) *lockedread.Locker[stock] {
	t.Helper()
	return rig.Must(lockedread.New(b.tableOf(t), cfg))(t)
}

// put replaces the item, as a program without the library would.
func (b bench) put(t testing.TB, more map[string]types.AttributeValue) {
	t.Helper()
	item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "apple"}, "count": &types.AttributeValueMemberN{Value: "10"}}
	for name, v := range more {
		item[name] = v
	}
	rig.Must(b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: item}))(t)
}

func (b bench) raw(t testing.TB) map[string]types.AttributeValue {
	t.Helper()
	return b.Item(t, map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "apple"}})
}

func acquire(t testing.TB, l *lockedread.Locker[stock]) *lockedread.Held[stock] {
	t.Helper()
	return rig.Must(l.TryAcquire(t.Context(), key))(t)
}

func wantCount(t testing.TB, b bench, want int) {
	t.Helper()
	got, err := b.tableOf(t).Get(t.Context(), key)
	if err != nil || got.Count != want {
		t.Errorf("count %d, %v; want %d", got.Count, err, want)
	}
}
