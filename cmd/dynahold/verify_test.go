package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/verify"
	"github.com/dynahold/dynahold/history"
)

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
	n, calls := recorded(t)
	n.says("verify orders", exitOK, "the protocol allows all of them")
	all := n.documents()
	file := filepath.Join(t.TempDir(), "night.json")
	n.is(os.WriteFile(file, []byte(all+calls+all), 0o600)) // delivered twice
	n.says("verify orders "+file, exitOK, "the protocol allows all of them", fmt.Sprint(strings.Count(calls, "\n"), " calls"))
	in, err := verify.Read(strings.NewReader(all+calls), "here")
	n.is(err)
	changes := in.Changes
	for name, plant := range plantedCalls {
		t.Run(name, func(t *testing.T) {
			told := slices.Clone(in.Calls)
			if !plant.change(told) {
				t.Fatal("no call that it can be made of")
			}
			text := all
			for _, c := range told {
				line, err := json.Marshal(c)
				n.is(err)
				text += string(line) + "\n"
			}
			n.finds(t, file, text, plant.rule, plant.says)
		})
	}
	for name, plant := range planted {
		t.Run(name, func(t *testing.T) {
			last := lastOf(changes, plant.item)
			keys := map[string]types.AttributeValue{"id": last["id"]}
			text, before := all, last
			for i, change := range plant.changes {
				after := maps.Clone(before)
				change(after, changesOf(changes, plant.item))
				at := time.Now().UTC()
				text += n.document(keys, verify.Change{Before: before, After: after, Time: at, Sequence: fmt.Sprint(1_000_000_000 + i)})
				before = after
			}
			n.finds(t, file, text, plant.rule, plant.says)
		})
	}
}

// finds demands that a history has one breach; without a rule, none.
func (n *night) finds(t *testing.T, file, text, rule, says string) {
	t.Helper()
	n.is(os.WriteFile(file, []byte(text), 0o600))
	code, out, _ := n.call("", "verify orders -o json "+file)
	var r verify.Report
	n.is(json.Unmarshal([]byte(out), &r))
	if rule == "" && code == exitOK && len(r.Breaches) == 0 {
		return
	}
	if code != exitFound || len(r.Breaches) != 1 || r.Breaches[0].Rule != rule || !strings.Contains(r.Breaches[0].Says, says) {
		t.Errorf("code %d, %+v", code, r.Breaches)
	}
}

// plantedCalls are calls that were told something else than what was done; false where no
// call is one of which it can be told.
var plantedCalls = map[string]struct {
	rule, says string
	change     func([]history.Call) bool
}{
	"not written, and it was": {verify.RuleVerdict, "nothing was written (conflict)", func(calls []history.Call) bool {
		i := done(calls, 0)
		calls[i].Verdict, calls[i].Error = history.Refused, "conflict"
		return true
	}},
	"done, and it was not": {verify.RuleVerdict, "is not there", func(calls []history.Call) bool {
		i := done(calls, 0)
		for i >= 0 && !inside(calls, calls[i], calls[i].Writes[0].Key) {
			i = done(calls, i+1)
		}
		if i >= 0 {
			calls[i].Writes = []history.Write{calls[i].Writes[0]}
			calls[i].Writes[0].ID = "0102030405060708"
		}
		return i >= 0
	}},
	"done twice": {verify.RuleTwice, "applied twice", func(calls []history.Call) bool {
		i := done(calls, 0)
		j := done(calls, i+1)
		for j >= 0 && calls[j].Writes[0].Key != calls[i].Writes[0].Key {
			j = done(calls, j+1)
		}
		if j >= 0 {
			calls[i].Writes = slices.Concat(calls[i].Writes, calls[j].Writes)
		}
		return j >= 0
	}},
	"a part of a transaction": {verify.RuleWhole, "has written other items", func(calls []history.Call) bool {
		for i := done(calls, 0); i >= 0; i = done(calls, i+1) {
			part := calls[i].Writes[0]
			for id := range 3 {
				part.Key = history.KeyHash(image{"id": &types.AttributeValueMemberS{Value: fmt.Sprint("item-", id)}})
				if part.Answer = history.None; part.Key != calls[i].Writes[0].Key && inside(calls, calls[i], part.Key) {
					calls[i].Writes = slices.Concat(calls[i].Writes, []history.Write{part})
					return true
				}
			}
		}
		return false
	}},
}

// done is the next call that has made one write, and was told so.
func done(calls []history.Call, from int) int {
	for i := from; i < len(calls); i++ {
		if c := calls[i]; c.Verdict == history.Done && len(c.Writes) == 1 && c.Writes[0].Answer == history.Applied {
			return i
		}
	}
	return -1
}

// inside reports whether a call is surely between the first and the last change of an item,
// by times that are told to the second.
func inside(calls []history.Call, c history.Call, key string) bool {
	i := slices.IndexFunc(calls, func(c history.Call) bool {
		return len(c.Writes) > 0 && c.Writes[0].Key == key && c.Writes[0].Answer == history.Applied
	})
	return i >= 0 && c.Began.After(calls[i].Ended.Add(2*time.Second)) && c.Ended.Before(calls[len(calls)-1].Ended.Add(-2*time.Second))
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
	"an epoch that falls by a year":        {"free", verify.RuleOnce, "epoch", one(func(i image) { add(i, "onceEpoch", -24*365) })},
	// Not a fault: the shortest of the longer ones by which ids are counted anew.
	"an epoch of a longer Remember": {"free", "", "", one(func(i image) { i["onceEpoch"] = digits(intOf(i["onceEpoch"]) * 100 / 118) })},
}

func one(f func(image)) []func(image, []verify.Change) {
	return []func(image, []verify.Change){func(i image, _ []verify.Change) { f(i) }}
}

func changesOf(all []verify.Change, id string) (of []verify.Change) {
	for _, c := range all {
		if c.Name == fmt.Sprintf("id=%q", id) {
			of = append(of, c)
		}
	}
	return of
}

func lastOf(all []verify.Change, id string) image {
	of := changesOf(all, id)
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

// again applies a write of the item once more, whose id has left the list.
func again(i image, of []verify.Change) {
	count(i, 1)
	for _, c := range of {
		if id := bytesOf(c.After["writers"])[:8]; !bytes.Contains(bytesOf(i["writers"]), id) {
			push(i, id...)
			return
		}
	}
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
