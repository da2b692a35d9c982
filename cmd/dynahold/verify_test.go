package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/verify"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// writer is a process that writes the orders in all ways.
type writer struct {
	client    *dynamodb.Client
	versions  repo.Repository[order]
	direct    *optimistic.Repository[order]
	locks     *pessimistic.Repository[order]
	holds     *lockedread.Locker[order]
	operation int
	random    *mathrand.Rand
}

// broken is a client of the engine, a share of whose requests is broken.
func (n *night) broken(seed uint64, rate float64) *dynamodb.Client {
	o := n.client.Options()
	o.HTTPClient = fault.New(o.HTTPClient.(fault.Doer), fault.Config{Seed: seed, Rate: rate, MaxDelay: 2 * time.Millisecond})
	return dynamodb.New(o)
}

func (n *night) writer(seed uint64, rate float64) *writer {
	n.Helper()
	w := &writer{client: n.broken(seed, rate), random: mathrand.New(mathrand.NewPCG(seed, 1))}
	table, err := repo.NewTable[order](w.client, "orders", repo.TableConfig{AttemptTimeout: time.Second})
	n.is(err)
	w.direct, err = optimistic.New(table, optimistic.Config{Combine: seed%2 == 0, Warm: int(seed % 3), Fair: seed%3 == 0})
	n.is(err)
	w.locks, err = pessimistic.New(table, pessimistic.Config{Lease: 3 * time.Second, Race: seed%2 == 0})
	n.is(err)
	w.holds, err = lockedread.New(table, lockedread.Config{Lease: 3 * time.Second})
	n.is(err)
	w.versions = w.direct
	return w
}

// write makes one change of some kind. What comes of it is not asked: the stream tells.
func (w *writer) write(ctx context.Context) {
	key := repo.Key{Partition: fmt.Sprint("item-", w.random.IntN(3))}
	add := func(_ context.Context, o *order) error { o.Total++; return nil }
	switch w.random.IntN(10) {
	case 0:
		_, _ = w.versions.Upsert(ctx, key, add)
	case 1:
		_, _ = w.locks.Upsert(ctx, key, add)
	case 2:
		_, _ = w.direct.Apply(ctx, key, expression.Add(expression.Name("total"), expression.Value(1)))
	case 3:
		w.operation++
		_, _ = w.direct.Once(fmt.Sprint(w.random.Uint64())).Update(ctx, key, add)
	case 4:
		other := repo.Key{Partition: fmt.Sprint("item-", w.random.IntN(3))}
		_ = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			_, err := w.direct.In(tx).Update(ctx, key, add)
			if other != key && err == nil {
				_, err = w.locks.In(tx).Update(ctx, other, add)
			}
			return err
		})
	case 5:
		if held, err := w.holds.Acquire(ctx, key); err == nil {
			_ = held.Release(ctx)
		}
	case 6:
		if held, err := w.holds.Acquire(ctx, key); err == nil {
			o := held.Item()
			o.Total++
			_, _ = held.Commit(ctx, o)
		}
	case 7:
		if w.random.IntN(8) == 0 {
			_, _ = w.direct.Update(ctx, key, func(context.Context, *order) error { return repo.Remove })
		}
	default:
		_, _ = w.direct.Update(ctx, key, add)
	}
}

// recorded is the history of a few processes over a network that breaks, with a hold that
// ends with its lease, and one that stands.
func recorded(t *testing.T) *night {
	t.Helper()
	n := streamed(t, types.StreamViewTypeNewAndOldImages)
	var all sync.WaitGroup
	for seed := range uint64(4) {
		all.Go(func() {
			w := n.writer(seed, 0.1)
			for range 40 {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				w.write(ctx)
				cancel()
			}
		})
	}
	all.Wait()
	last := n.writer(7, 0)
	for _, id := range []string{"left", "held", "free"} {
		key := repo.Key{Partition: id}
		for range 12 {
			_, err := last.direct.Once(rand.Text()).Upsert(t.Context(), key, func(_ context.Context, o *order) error { o.Total++; return nil })
			n.is(err)
		}
		if id == "free" {
			continue
		}
		holder := last.holds
		if id == "held" {
			holder = n.items("till", 0, false) // for a minute
		}
		_, err := holder.Acquire(t.Context(), key)
		n.is(err)
	}
	_, err := last.direct.Update(t.Context(), repo.Key{Partition: "left"}, func(_ context.Context, o *order) error { o.Total++; return nil })
	n.is(err) // it has waited for the lease to end
	return n
}

// documents are the stream's records, as the command line prints them.
func (n *night) documents() string {
	n.Helper()
	s := dynamodbstreams.New(dynamodbstreams.Options{Region: "us-east-1", Credentials: n.client.Options().Credentials, BaseEndpoint: &n.endpoint})
	table, err := n.client.DescribeTable(n.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("orders")})
	n.is(err)
	var b strings.Builder
	n.is((&stream{client: s, arn: *table.Table.LatestStreamArn}).read(n.Context(), func(r streamtypes.Record) error {
		c, err := changeIn(r)
		n.is(err)
		keys, err := attributevalue.FromDynamoDBStreamsMap(r.Dynamodb.Keys)
		n.is(err)
		b.WriteString(n.document(keys, c))
		return nil
	}))
	return b.String()
}

// document is one record in a batch of its own.
func (n *night) document(keys map[string]types.AttributeValue, c verify.Change) string {
	n.Helper()
	image := func(of map[string]types.AttributeValue) json.RawMessage {
		if of == nil {
			return nil
		}
		text, err := attributevalue.MarshalMapJSON(of)
		n.is(err)
		return text
	}
	text, err := json.Marshal(map[string]any{"Records": []any{map[string]any{"dynamodb": map[string]any{
		"Keys": image(keys), "OldImage": image(c.Before), "NewImage": image(c.After), "SequenceNumber": c.Sequence,
		"ApproximateCreationDateTime": c.Time.Format(time.RFC3339), "StreamViewType": "NEW_AND_OLD_IMAGES",
	}}}})
	n.is(err)
	return string(text) + "\n"
}

func TestVerify(t *testing.T) {
	n := recorded(t)
	n.says("verify orders", exitOK, "the protocol allows all of them")
	all := n.documents()
	file := filepath.Join(t.TempDir(), "night.json")
	n.is(os.WriteFile(file, []byte(all+all), 0o600)) // delivered twice
	n.says("verify orders "+file, exitOK, "the protocol allows all of them")
	changes, err := verify.Read(strings.NewReader(all), "here")
	n.is(err)
	for name, plant := range planted {
		t.Run(name, func(t *testing.T) {
			last := lastOf(changes, plant.item)
			keys := map[string]types.AttributeValue{"id": last["id"]}
			text, before := all, last
			for i, change := range plant.changes {
				after := maps.Clone(before)
				change(after, history(changes, plant.item))
				at := time.Now().UTC()
				text += n.document(keys, verify.Change{Before: before, After: after, Time: at, Sequence: fmt.Sprint(1_000_000_000 + i)})
				before = after
			}
			n.is(os.WriteFile(file, []byte(text), 0o600))
			code, out, _ := n.call("", "verify orders -o json "+file)
			var r verify.Report
			n.is(json.Unmarshal([]byte(out), &r))
			if code != exitFound || len(r.Breaches) != 1 || r.Breaches[0].Rule != plant.rule || !strings.Contains(r.Breaches[0].Says, plant.says) || !strings.HasPrefix(r.Breaches[0].Sequence, "1000000") {
				t.Errorf("code %d, %+v", code, r.Breaches)
			}
		})
	}
}

type image = map[string]types.AttributeValue

// plant is a fault at the end of an item's history.
type plant struct {
	item, rule, says string
	changes          []func(image, []verify.Change)
}

// planted are changes that the protocol does not allow.
var planted = map[string]plant{
	"a version that falls":                 {"free", verify.RuleVersion, "fell", one(func(i image) { writes(i, 1); count(i, -1) })},
	"a write that is not counted":          {"free", verify.RuleVersion, "left the version", one(func(i image) { writes(i, 1) })},
	"writes that nobody has seen":          {"free", verify.RuleVersion, "in one write", one(func(i image) { writes(i, 1); count(i, 1000) })},
	"a write that is applied again":        {"free", verify.RuleWriters, "applied twice", []func(image, []verify.Change){again}},
	"two writes at once":                   {"free", verify.RuleWriters, "ids of 2 writes", one(func(i image) { writes(i, 2); count(i, 2) })},
	"evidence that is rewritten":           {"free", verify.RuleWriters, "another order", one(func(i image) { writes(i, 1); count(i, 1); swap(i) })},
	"a writer without the protocol":        {"free", verify.RuleRight, "left no id", one(func(i image) { i["total"] = digits(77) })},
	"a hold that is broken by a writer":    {"held", verify.RuleRight, "broke the hold of till", one(func(i image) { writes(i, 1); count(i, 1); steal(i); i["total"] = digits(77) })},
	"a token that falls":                   {"held", verify.RuleTokens, "next token fell", one(func(i image) { add(i, "lockToken", -1) })},
	"evidence of a lost hold that falls":   {"left", verify.RuleTokens, "somebody else ended fell", one(func(i image) { add(i, "lockStolen", -1) })},
	"a token that is given out again":      {"left", verify.RuleTokens, "a hold before had", takes(-1)},
	"a takeover before the end of a lease": {"held", verify.RuleLease, "took it over from till", takes(0)},
	"an operation that is forgotten":       {"free", verify.RuleOnce, "forgot the operation", one(func(i image) { shorten(i) })},
	"an operation that is made again":      {"free", verify.RuleOnce, "applied twice", []func(image, []verify.Change){nextEpoch, repeatOperation}},
	"an epoch that falls":                  {"free", verify.RuleOnce, "epoch", one(func(i image) { add(i, "onceEpoch", -1) })},
}

func one(f func(image)) []func(image, []verify.Change) {
	return []func(image, []verify.Change){func(i image, _ []verify.Change) { f(i) }}
}

func history(all []verify.Change, id string) (of []verify.Change) {
	for _, c := range all {
		if c.Name == fmt.Sprintf("id=%q", id) {
			of = append(of, c)
		}
	}
	return of
}

func lastOf(all []verify.Change, id string) image {
	of := history(all, id)
	return of[len(of)-1].After
}

func digits(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

func intOf(v types.AttributeValue) (n int64) {
	_, _ = fmt.Sscan(v.(*types.AttributeValueMemberN).Value, &n)
	return n
}

func add(i image, name string, n int64) {
	i[name] = digits(intOf(i[name]) + n)
}

func count(i image, n int64) { add(i, "version", n) }

func bytesOf(v types.AttributeValue) []byte {
	return bytes.Clone(v.(*types.AttributeValueMemberB).Value)
}

// push puts ids in front of those of the latest writes.
func push(i image, ids ...byte) {
	ring := slices.Concat(ids, bytesOf(i["writers"]))
	i["writers"] = &types.AttributeValueMemberB{Value: ring[:min(len(ring), 64)]}
}

func writes(i image, n int) {
	ids := make([]byte, 8*n)
	for k := range ids {
		ids[k] = byte(k + 1)
	}
	push(i, ids...)
}

// again applies the first write of the item once more, whose id has left the list.
func again(i image, of []verify.Change) {
	count(i, 1)
	push(i, bytesOf(of[0].After["writers"])[:8]...)
}

func swap(i image) {
	ring := bytesOf(i["writers"])
	ring = slices.Concat(ring[:8], ring[16:24], ring[8:16], ring[24:])
	i["writers"] = &types.AttributeValueMemberB{Value: ring}
}

// steal ends the hold by force, and hold takes the lock; more is what its token is above the next one.
func steal(i image) {
	i["lockStolen"] = i["lockHeld"]
	for _, name := range []string{"lockedBy", "lockTime", "lockLease", "lockHeld"} {
		delete(i, name)
	}
}

func hold(i image, theirs types.AttributeValue, more int64) {
	i["lockedBy"] = theirs
	i["lockTime"] = digits(time.Now().Add(time.Minute).Unix())
	i["lockLease"] = digits(60)
	next := intOf(i["lockToken"])
	i["lockHeld"] = digits(next + more)
	add(i, "lockToken", 1+more)
	if more < 0 {
		i["lockToken"] = digits(next)
	}
}

// takes takes the lock from whoever has it, as somebody who has had it before.
func takes(more int64) []func(image, []verify.Change) {
	return []func(image, []verify.Change){func(i image, of []verify.Change) {
		if i["lockedBy"] != nil {
			steal(i)
		}
		for _, c := range of {
			if by := c.After["lockedBy"]; by != nil {
				hold(i, by, more)
				return
			}
		}
	}}
}

func shorten(i image) {
	i["once"] = &types.AttributeValueMemberBS{Value: i["once"].(*types.AttributeValueMemberBS).Value[1:]}
}

func nextEpoch(i image, _ []verify.Change) {
	i["oncePast"] = i["once"]
	i["once"] = &types.AttributeValueMemberBS{Value: [][]byte{[]byte("twelve bytes")}}
	add(i, "onceEpoch", 1)
}

func repeatOperation(i image, _ []verify.Change) {
	i["once"] = &types.AttributeValueMemberBS{Value: [][]byte{[]byte("twelve bytes"), i["oncePast"].(*types.AttributeValueMemberBS).Value[0]}}
}
