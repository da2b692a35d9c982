package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.Main(m) }

type account struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Balance int    `dynamodbav:"balance"`
	Note    string `dynamodbav:"note,omitempty"`
	Version int    `dynamodbav:"version" repo:"version"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
	Event   string `dynamodbav:"event,omitempty" repo:"eventid"`
}

var key = repo.Key{Partition: "p"}

func text(s string) types.AttributeValue   { return ddb.Text(s) }
func number(s string) types.AttributeValue { return ddb.Number(s) }
func bytesOf(n int) types.AttributeValue   { return ddb.Bytes(make([]byte, n)) }
func list(v ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: v}
}

// wrong are values that the library never writes, by the names under which it
// keeps something.
func wrong() map[string][]types.AttributeValue {
	kinds := map[string]types.AttributeValue{
		"S": text("a note of the user's own"), "N": number("7"), "B": bytesOf(5), "BOOL": &types.AttributeValueMemberBOOL{Value: false},
		"NULL": &types.AttributeValueMemberNULL{Value: true}, "L": list(text("Ann"), text("Ben")), "M": &types.AttributeValueMemberM{Value: ddb.Item{"a": number("1")}},
		"SS": &types.AttributeValueMemberSS{Value: []string{"a"}}, "NS": &types.AttributeValueMemberNS{Value: []string{"1"}}, "BS": &types.AttributeValueMemberBS{Value: [][]byte{{1}}},
	}
	but := func(right string, more ...types.AttributeValue) []types.AttributeValue {
		var values []types.AttributeValue
		for _, kind := range []string{"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"} {
			if kind != right {
				values = append(values, kinds[kind])
			}
		}
		return append(values, more...)
	}
	numbers := but("N", number("-1"), number("1e100"), number("-1e100"), number("9223372036854775808"))
	marks := but("", &types.AttributeValueMemberBOOL{Value: false})
	return map[string][]types.AttributeValue{
		"lockedBy": but(""), // a string too: no lock says who and not until when
		"lockTime": numbers, "lockLease": numbers, "lockHeld": numbers, "lockToken": numbers, "lockStolen": numbers,
		"lockStub": marks, "tombstone": marks,
		"writers": but("B"), // of bytes see TestBytesThatAreNoRing
	}
}

// bases are items on which something foreign stands.
func bases(now time.Time) map[string]ddb.Item {
	plain := ddb.Item{"id": text("p"), "balance": number("3"), "version": number("1"), "at": number("10"), "writers": bytesOf(16)}
	with := func(more ddb.Item) ddb.Item {
		item := ddb.Copy(plain)
		for name, v := range more {
			item[name] = v
		}
		return item
	}
	return map[string]ddb.Item{
		"an item": plain,
		"under a dead lock": with(ddb.Item{"lockedBy": text(stored.NewID("dead")), "lockTime": ddb.Integer(now.Add(-time.Hour).Unix()), "lockLease": number("30"),
			"lockHeld": number("100"), "lockToken": number("101"), "lockStolen": number("99")}),
		"under a dead lock by hand": with(ddb.Item{"lockedBy": text("hand"), "lockTime": ddb.Integer(now.Add(-time.Hour).Unix())}),
		"a tombstone":               {"id": text("p"), "version": number("1"), "at": number("10"), "tombstone": ddb.True(), "expiresAt": ddb.Integer(now.Add(time.Hour).Unix())},
	}
}

// operation is one public call.
type operation struct {
	name string
	do   func(ctx context.Context, raw ddb.Item) error
}

// operations are all public calls that read or write an item.
func operations(t *testing.T, b *rig.Rig) []operation {
	table := rig.Must(repo.NewTable[account](b.Client, b.Table, repo.TableConfig{}))(t)
	events := rig.Must(nolock.New(table, nolock.Config{}))(t)
	versions := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	warm := rig.Must(optimistic.New(table, optimistic.Config{Combine: true, Warm: 8}))(t)
	locks := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	fair := rig.Must(pessimistic.New(table, pessimistic.Config{Fair: true}))(t)
	clockless := rig.Must(lockedread.New(table, lockedread.Config{Clockless: true}))(t)
	keys := mutex.Config{Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}}
	closed := rig.Must(mutex.New(b.Client, b.Table, keys))(t)
	keys.Mode = mutex.FailOpen
	open := rig.Must(mutex.New(b.Client, b.Table, keys))(t)
	keys.Fair = true
	openFair := rig.Must(mutex.New(b.Client, b.Table, keys))(t)
	keys.Mode = mutex.FailClosed
	closedFair := rig.Must(mutex.New(b.Client, b.Table, keys))(t)
	t.Cleanup(func() {
		for _, l := range []*mutex.Locker{closed, open, openFair, closedFair} {
			_ = l.Close(context.Background())
		}
	})

	change := func(_ context.Context, a *account) error { a.Balance++; a.At = 20; return nil }
	item := account{ID: "p", Balance: 9, At: 20}
	versioned := account{ID: "p", Balance: 9, At: 20, Version: 1}
	ops := []operation{
		{"Get", func(ctx context.Context, _ ddb.Item) error { _, err := table.Get(ctx, key); return err }},
		{"Decode", func(_ context.Context, raw ddb.Item) error { _, err := table.Decode(raw); return err }},
		{"Query", func(ctx context.Context, _ ddb.Item) error {
			for _, err := range table.Query(ctx, "p") {
				return err
			}
			return nil
		}},
		{"Inspect", func(ctx context.Context, _ ddb.Item) error { _, err := table.Inspect(ctx, key); return err }},
		{"nolock.Put", func(ctx context.Context, _ ddb.Item) error { return events.Put(ctx, item) }},
		{"nolock.Apply", func(ctx context.Context, _ ddb.Item) error {
			return events.Apply(ctx, key, 20, expression.Add(expression.Name("balance"), expression.Value(1)))
		}},
		{"nolock.DeleteAt", func(ctx context.Context, _ ddb.Item) error { return events.DeleteAt(ctx, key, 20) }},
		{"optimistic.Save", func(ctx context.Context, _ ddb.Item) error { _, err := versions.Save(ctx, versioned); return err }},
		{"optimistic.Remove", func(ctx context.Context, _ ddb.Item) error { return versions.Remove(ctx, versioned) }},
		{"Acquire", func(ctx context.Context, _ ddb.Item) error { _, err := locks.Acquire(ctx, key); return err }},
		{"TryAcquire", func(ctx context.Context, _ ddb.Item) error { _, err := locks.TryAcquire(ctx, key); return err }},
		{"AcquireOrCreate", func(ctx context.Context, _ ddb.Item) error {
			_, err := locks.Locker().AcquireOrCreate(ctx, key)
			return err
		}},
		{"Acquire, clockless", func(ctx context.Context, _ ddb.Item) error { _, err := clockless.Acquire(ctx, key); return err }},
		{"Break", func(ctx context.Context, _ ddb.Item) error { return locks.Locker().Break(ctx, key, 0) }},
		{"Break a token", func(ctx context.Context, _ ddb.Item) error { return locks.Locker().Break(ctx, key, 100) }},
		{"mutex.Lock, fail-closed", func(ctx context.Context, _ ddb.Item) error { _, err := closed.Lock(ctx, "p"); return err }},
		{"mutex.TryLock, fail-open", func(ctx context.Context, _ ddb.Item) error { _, err := open.TryLock(ctx, "p"); return err }},
		{"mutex.Lock, fail-open, fair", func(ctx context.Context, _ ddb.Item) error { _, err := openFair.Lock(ctx, "p"); return err }},
		{"mutex.Lock, fail-closed, fair", func(ctx context.Context, _ ddb.Item) error { _, err := closedFair.Lock(ctx, "p"); return err }},
		{"mutex.Break", func(ctx context.Context, _ ddb.Item) error { return open.Break(ctx, "p", 100) }},
		{"mutex.Release, fail-closed", func(ctx context.Context, _ ddb.Item) error { return closed.Release(ctx, "p", "an id") }},
		{"mutex.Release, fail-open", func(ctx context.Context, _ ddb.Item) error { return open.Release(ctx, "p", "an id") }},
	}
	for name, r := range map[string]repo.Repository[account]{"nolock": events, "optimistic": versions, "optimistic, warm and combined": warm, "pessimistic": locks, "pessimistic, fair": fair} {
		ops = append(ops,
			operation{name + ".Create", func(ctx context.Context, _ ddb.Item) error { _, err := r.Create(ctx, item); return err }},
			operation{name + ".Update", func(ctx context.Context, _ ddb.Item) error { _, err := r.Update(ctx, key, change); return err }},
			operation{name + ".Upsert", func(ctx context.Context, _ ddb.Item) error { _, err := r.Upsert(ctx, key, change); return err }},
			operation{name + ".Delete", func(ctx context.Context, _ ddb.Item) error { return r.Delete(ctx, key) }},
		)
	}
	return ops
}

func inTable(t *testing.T, b *rig.Rig) ddb.Item {
	t.Helper()
	out, err := b.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &b.Table, Key: ddb.Item{"id": text("p")}, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

func put(t *testing.T, b *rig.Rig, item ddb.Item) {
	t.Helper()
	if _, err := b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: item}); err != nil {
		t.Fatal(err)
	}
}

func newTable(t *testing.T) *rig.Rig {
	t.Helper()
	b := rig.New(t)
	rig.Is(t, rig.Must(repo.NewTable[account](b.Client, b.Table, repo.TableConfig{}))(t).EnsureTable(t.Context()))
	return b
}

// An attribute that has one of the library's names and is not the library's is
// neither believed nor overwritten: every public call says ErrSchema, and leaves
// the item as it is, byte for byte.
func TestForeignAttributesUnderOurNames(t *testing.T) {
	b := newTable(t)
	ops := operations(t, b)
	for base, item := range bases(time.Now()) {
		for name, values := range wrong() {
			for i, v := range values {
				if (base != "an item" || rig.Quick()) && i > 0 && i < len(values)-1 {
					continue // the kinds differ in the conditions, which are the same here
				}
				foreign := ddb.Copy(item)
				foreign[name] = v
				if base == "under a dead lock" && name == "lockedBy" || base == "under a dead lock by hand" && name == "lockedBy" {
					if _, isText := v.(*types.AttributeValueMemberS); isText {
						continue // somebody's name, and until when: a lock by hand
					}
				}
				put(t, b, foreign)
				for _, op := range ops {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					err := op.do(ctx, foreign)
					cancel()
					if now := inTable(t, b); !ddb.EqualItems(foreign, now) {
						t.Errorf("%s with %s = %s %v: %s has written: %v, stored %v", base, name, ddb.TypeName(v), v, op.name, err, show(now))
						put(t, b, foreign)
					}
					if !errors.Is(err, repo.ErrSchema) {
						t.Errorf("%s with %s = %s %v: %s: %v, want ErrSchema", base, name, ddb.TypeName(v), v, op.name, err)
					}
				}
			}
		}
	}
}

func show(item ddb.Item) string {
	var all []string
	for name, v := range item {
		all = append(all, fmt.Sprintf("%s=%s %v", name, ddb.TypeName(v), v))
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

// Bytes of a length that no ring has, under the ring's name: whoever would
// overwrite them writes nothing.
func TestBytesOfALengthThatNoRingHas(t *testing.T) {
	b := newTable(t)
	ops := operations(t, b)
	for _, n := range []int{0, 5, 12, 63, 72} {
		foreign := bases(time.Now())["an item"]
		foreign["writers"] = bytesOf(n)
		put(t, b, foreign)
		for _, op := range ops {
			err := op.do(t.Context(), foreign)
			rig.Is(t, err, repo.ErrSchema)
			wantDataKept(t, b, foreign, fmt.Sprintf("%d bytes, %s", n, op.name))
		}
	}
}

// That a number is whole no condition can ask. An acquire that finds a fraction
// where a token must be gives the lock back.
func TestAFractionForAToken(t *testing.T) {
	b := newTable(t)
	ops := operations(t, b)
	for _, name := range []string{"lockToken", "lockHeld", "lockStolen"} {
		for _, op := range ops {
			if op.name == "Decode" {
				continue
			}
			foreign := bases(time.Now())["an item"]
			foreign[name] = number("7.5")
			put(t, b, foreign)
			_ = op.do(t.Context(), foreign) // a write that needs no lock may pass by
			if now := inTable(t, b); now["lockedBy"] != nil {
				t.Errorf("%s is 7.5: %s leaves the item locked: %v", name, op.name, show(now))
			}
		}
	}
}

// wantDataKept verifies that an item has what it had, but for what a lock that
// was taken and given back has left.
func wantDataKept(t *testing.T, b *rig.Rig, want ddb.Item, what string) {
	t.Helper()
	now := inTable(t, b)
	delete(now, "lockToken")
	delete(now, "lockStolen")
	if !ddb.EqualItems(want, now) {
		t.Errorf("%s: stored %s", what, show(now))
		put(t, b, want)
	}
}
