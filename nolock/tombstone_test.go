package nolock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// older is the type of a program that knows less of an order.
type older struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	At    int64  `dynamodbav:"at" repo:"eventtime"`
	Event string `dynamodbav:"event,omitempty" repo:"eventid"`
}

// What the type of a deleting program does not know was still in the tombstone,
// and came back with the next event.
func TestNothingComesBackWithTheNextEvent(t *testing.T) {
	r, table, client := open[order](t, nolock.Config{})
	known := rig.Must(repo.NewTable[older](client, table.Name(), repo.TableConfig{AnyAttribute: true}))(t)
	unaware := rig.Must(nolock.New(known, nolock.Config{}))(t)
	locks := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	combining := rig.Must(pessimistic.New(table, pessimistic.Config{Combine: true}))(t)
	ctx := t.Context()
	deletions := map[string]func(repo.Key) error{
		"by an event": func(k repo.Key) error { return unaware.DeleteAt(ctx, k, 20) },
		"as it is":    func(k repo.Key) error { return unaware.Delete(ctx, k) },
	}
	set := func(_ context.Context, o *order) error { o.At = 30; o.Status = "new"; return nil }
	revivals := map[string]func(repo.Key) error{
		"Put": func(k repo.Key) error { return r.Put(ctx, order{ID: k.Partition.(string), Status: "new", At: 30}) },
		"Apply": func(k repo.Key) error {
			return r.Apply(ctx, k, 30, expression.Set(expression.Name("status"), expression.Value("new")))
		},
		"Apply that counts": func(k repo.Key) error {
			return r.Apply(ctx, k, 30, expression.Add(expression.Name("visits"), expression.Value(1)).Set(expression.Name("status"), expression.Value("new")))
		},
		"Apply of the unknown": func(k repo.Key) error {
			return r.Apply(ctx, k, 30, expression.Add(expression.Name("stranger"), expression.Value(1)).Set(expression.Name("status"), expression.Value("new")))
		},
		"Create": func(k repo.Key) error {
			_, err := r.Create(ctx, order{ID: k.Partition.(string), Status: "new", At: 30})
			return err
		},
		"Upsert":              func(k repo.Key) error { _, err := r.Upsert(ctx, k, set); return err },
		"Upsert, pessimistic": func(k repo.Key) error { _, err := locks.Upsert(ctx, k, set); return err },
		"Upsert, combining":   func(k repo.Key) error { _, err := combining.Upsert(ctx, k, set); return err },
		"Create, pessimistic": func(k repo.Key) error {
			_, err := locks.Create(ctx, order{ID: k.Partition.(string), Status: "new", At: 30})
			return err
		},
		"Put, unaware": func(k repo.Key) error { return unaware.Put(ctx, older{ID: k.Partition.(string), At: 30}) },
		"Create, unaware": func(k repo.Key) error {
			_, err := unaware.Create(ctx, older{ID: k.Partition.(string), At: 30})
			return err
		},
	}
	for by, update := range map[string]expression.UpdateBuilder{
		"Apply":                expression.Set(expression.Name("status"), expression.Value("new")),
		"Apply that counts":    expression.Add(expression.Name("visits"), expression.Value(1)),
		"Apply of the unknown": expression.Add(expression.Name("stranger"), expression.Value(1)),
	} {
		for _, reads := range []bool{false, true} {
			revivals[fmt.Sprintf("%s, in a transaction that reads: %v", by, reads)] = func(k repo.Key) error {
				return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
					if reads {
						_, err := r.In(tx).Get(ctx, k)
						rig.Is(t, err, repo.ErrNotFound)
					}
					return r.In(tx).Apply(ctx, k, 30, update)
				})
			}
		}
	}
	for how, remove := range deletions {
		for by, revive := range revivals {
			name := how + ", " + by
			key := repo.Key{Partition: name}
			rig.Is(t, r.Put(ctx, order{ID: name, Status: "old", Visits: 5, Meta: map[string]int{"a": 1}, At: 10}))
			rig.Is(t, r.Apply(ctx, key, 11, expression.Set(expression.Name("stranger"), expression.Value(7))))
			rig.Is(t, remove(key))
			if err := revive(key); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			now := itemOf(t, client, table.Name(), name)
			visits, stranger := number(now["visits"]), number(now["stranger"])
			if strings.HasPrefix(by, "Apply that counts") {
				visits += "-" // it counts from nothing: "1-"
			}
			if strings.HasPrefix(by, "Apply of the unknown") {
				stranger += "-"
			}
			if now["meta"] != nil || visits != "" && visits != "1-" || stranger != "" && stranger != "1-" || now["tombstone"] != nil || now["expiresAt"] != nil {
				t.Errorf("%s: stored %v", name, now)
			}
		}
	}
}

// An update that reads what a stub or a tombstone has kept finds nothing, as on a key
// without an item: neither data of the item before nor the time at which the library's
// own mark would go.
func TestAnEventBuildsOnNothingThatWasKept(t *testing.T) {
	type ending struct {
		order
		Until int64 `dynamodbav:"expiresAt,omitempty"`
	}
	r, table, client := open[ending](t, nolock.Config{})
	unaware := rig.Must(nolock.New(rig.Must(repo.NewTable[older](client, table.Name(), repo.TableConfig{AnyAttribute: true}))(t), nolock.Config{}))(t)
	locks := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	name := expression.Name
	for _, hidden := range []string{"tombstone", "stub"} {
		key := repo.Key{Partition: hidden}
		if hidden == "stub" {
			held := rig.Must(locks.Locker().AcquireOrCreate(t.Context(), key))(t)
			rig.Is(t, held.Release(t.Context()))
			rig.Must(client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String(table.Name()),
				Key:              map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: hidden}},
				UpdateExpression: aws.String("SET lockStub = :true, expiresAt = :soon"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":true": &types.AttributeValueMemberBOOL{Value: true},
					":soon": &types.AttributeValueMemberN{Value: "77"}}}))(t)
		} else {
			rig.Is(t, r.Put(t.Context(), ending{order: order{ID: hidden, Status: "old", Visits: 5, At: 10}, Until: 66}))
			rig.Is(t, unaware.DeleteAt(t.Context(), key, 20))
		}
		rig.Is(t, r.Apply(t.Context(), key, 30, expression.Set(name("count"), expression.IfNotExists(name("visits"), expression.Value(1))).
			Set(name("expiresAt"), expression.IfNotExists(name("expiresAt"), expression.Value(99)))))
		now := itemOf(t, client, table.Name(), hidden)
		if number(now["count"]) != "1" || number(now["expiresAt"]) != "99" || now["visits"] != nil || now["tombstone"] != nil || now["lockStub"] != nil {
			t.Errorf("%s: stored %v", hidden, now)
		}
		rig.Is(t, r.DeleteAt(t.Context(), key, 40))
		rig.Is(t, r.Apply(t.Context(), key, 50, expression.Add(name("expiresAt"), expression.Value(5))))
		if now := itemOf(t, client, table.Name(), hidden); number(now["expiresAt"]) != "5" {
			t.Errorf("%s: stored %v", hidden, now)
		}
	}
}

// A stub or tombstone that has changed meanwhile is not cleared: neither is an item made of
// nothing, nor does a new one lose what it has.
func TestOnlyWhatWasSeenIsCleared(t *testing.T) {
	_, of, client := open[order](t, nolock.Config{})
	text, number := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }, func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	put := func(item map[string]types.AttributeValue) {
		rig.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(of.Name()), Item: item}))(t)
	}
	type ending struct {
		order
		Until int64 `dynamodbav:"expiresAt,omitempty"`
	}
	for id, mark := range map[string]string{"tombstone": "tombstone", "stub": "lockStub", "tombstone, in a transaction": "tombstone", "stub, in a transaction": "lockStub"} {
		put(map[string]types.AttributeValue{"id": text(id), mark: &types.AttributeValueMemberBOOL{Value: true}, "expiresAt": number("77")})
		step := &rig.Intercept{Client: client}
		step.Update = func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
			if n != 2 { // the first finds the mark, the second clears it
				return send()
			}
			if mark == "tombstone" {
				put(map[string]types.AttributeValue{"id": text(id), "at": number("1"), "expiresAt": number("88")})
			} else {
				rig.Must(client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(of.Name()), Key: map[string]types.AttributeValue{"id": text(id)}}))(t)
			}
			out, err := send()
			if now := itemOf(t, client, of.Name(), id); err == nil || mark == "lockStub" && now != nil || mark == "tombstone" && now["expiresAt"] == nil {
				t.Errorf("%s: %v, stored %v", id, err, now)
			}
			return out, err
		}
		r := rig.Must(nolock.New(rig.Must(repo.NewTable[ending](step, of.Name(), repo.TableConfig{}))(t), nolock.Config{}))(t)
		name := expression.Name("expiresAt")
		update := expression.Set(name, expression.IfNotExists(name, expression.Value(99)))
		if strings.HasSuffix(id, "transaction") {
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				return r.In(tx).Apply(ctx, repo.Key{Partition: id}, 30, update)
			}))
		} else {
			rig.Is(t, r.Apply(t.Context(), repo.Key{Partition: id}, 30, update))
		}
		now := itemOf(t, client, of.Name(), id)
		if at, ok := now["at"].(*types.AttributeValueMemberN); !ok || at.Value != "30" {
			t.Errorf("%s: stored %v", id, now)
		}
	}
}

func itemOf(t *testing.T, client *dynamodb.Client, table, id string) map[string]types.AttributeValue {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

func number(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// A delete that has read the item takes all of it away at once.
func TestADeleteThatReadsLeavesNothing(t *testing.T) {
	r, table, client := open[order](t, nolock.Config{})
	rig.Is(t, r.Put(t.Context(), order{ID: "o1", Status: "s", At: 10, Event: "e"}))
	rig.Is(t, r.Apply(t.Context(), key, 11, expression.Set(expression.Name("stranger"), expression.Value(7))))
	rig.Is(t, r.Delete(t.Context(), key))
	for name := range itemOf(t, client, table.Name(), "o1") {
		switch name {
		case "id", "at", "event", "tombstone", "expiresAt", "writers":
		default:
			t.Errorf("the tombstone keeps %q", name)
		}
	}
}

// An image of a stub or a tombstone, and one that a record does not have, were decoded to
// an item that nobody has.
func TestDecodeOfWhatReadersDoNotSee(t *testing.T) {
	r, table, client := open[order](t, nolock.Config{})
	for _, none := range []map[string]types.AttributeValue{nil, {}} {
		_, err := table.Decode(none)
		rig.Is(t, err, repo.ErrNotFound)
	}
	rig.Is(t, r.DeleteAt(t.Context(), key, 5))
	_, err := table.Decode(itemOf(t, client, table.Name(), "o1"))
	rig.Is(t, err, repo.ErrNotFound)
	locks := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	held := rig.Must(locks.Locker().AcquireOrCreate(t.Context(), repo.Key{Partition: "new"}))(t)
	_, err = table.Decode(itemOf(t, client, table.Name(), "new"))
	rig.Is(t, err, repo.ErrNotFound)
	rig.Is(t, held.Release(t.Context()))
	rig.Is(t, r.Put(t.Context(), order{ID: "o1", Status: "s", At: 6}))
	got, err := table.Decode(itemOf(t, client, table.Name(), "o1"))
	if err != nil || got.Status != "s" {
		t.Errorf("%+v, %v", got, err)
	}
}

// An event time of zero is one that nobody has set.
func TestAnEventTimeOfZero(t *testing.T) {
	type timed struct {
		ID string    `dynamodbav:"id" repo:"pk"`
		At time.Time `dynamodbav:"at,unixtime" repo:"eventtime"`
	}
	ctx, epoch := t.Context(), time.Unix(0, 0)
	note := expression.Set(expression.Name("note"), expression.Value("x"))
	sequence, _, _ := open[order](t, nolock.Config{})
	millis, _, _ := open[order](t, nolock.Config{Unit: time.Millisecond})
	seconds, _, _ := open[timed](t, nolock.Config{})
	_, created := sequence.Create(ctx, order{ID: "o1"})
	_, upserted := sequence.Upsert(ctx, key, func(_ context.Context, o *order) error { o.Status = "s"; return nil })
	_, upsertedTime := seconds.Upsert(ctx, key, func(_ context.Context, o *timed) error { o.At = epoch; return nil })
	for name, err := range map[string]error{
		"put": sequence.Put(ctx, order{ID: "o1"}), "apply": sequence.Apply(ctx, key, 0, note), "delete": sequence.DeleteAt(ctx, key, int64(0)),
		"event": sequence.DeleteAt(ctx, key, nolock.Event{Time: 0, ID: "x"}), "create": created, "upsert": upserted,
		"time as integer": millis.Apply(ctx, key, epoch, note), "unix time": millis.Apply(ctx, key, attributevalue.UnixTime(epoch), note),
		"zero time": millis.DeleteAt(ctx, key, time.Time{}), "a fraction of a unit": millis.DeleteAt(ctx, key, time.Unix(0, 10)),
		"put of seconds": seconds.Put(ctx, timed{"o1", epoch}), "upsert of seconds": upsertedTime, "delete at the epoch": seconds.DeleteAt(ctx, key, epoch),
	} {
		if rig.Is(t, err, repo.ErrSchema); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	for _, r := range []interface {
		Delete(context.Context, repo.Key) error
	}{sequence, millis, seconds} {
		rig.Is(t, r.Delete(ctx, key), repo.ErrNotFound) // nothing was written
	}
	rig.Is(t, sequence.Put(ctx, order{ID: "o1", At: -5})) // before 1970
	_, err := sequence.Update(ctx, key, func(_ context.Context, o *order) error { o.At = 0; return nil })
	rig.Is(t, err, repo.ErrSchema)
}

// An event id that is not UTF-8 came back changed: the event, delivered again,
// was not known.
func TestAnEventIDThatIsNotUTF8(t *testing.T) {
	r, _, _ := open[order](t, nolock.Config{})
	rig.Is(t, r.Put(t.Context(), order{ID: "o1", At: 1, Event: "\xff"}), repo.ErrSchema)
	rig.Is(t, r.DeleteAt(t.Context(), key, nolock.Event{Time: 1, ID: "a\xc3"}), repo.ErrSchema)
	rig.Is(t, r.Put(t.Context(), order{ID: "\xff", At: 1}), repo.ErrKey)
}
