package costs_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// product has ten fields, as an item of a shop might.
type product struct {
	ID       string   `dynamodbav:"id" repo:"pk"`
	Name     string   `dynamodbav:"name"`
	Stock    int      `dynamodbav:"stock"`
	Reserved int      `dynamodbav:"reserved"`
	Price    int      `dynamodbav:"price"`
	Shelf    string   `dynamodbav:"shelf"`
	Tags     []string `dynamodbav:"tags"`
	Active   bool     `dynamodbav:"active"`
	Updated  int64    `dynamodbav:"updated"`
	Note     string   `dynamodbav:"note"`
}

var sample = product{"apple", "Apple", 100, 3, 129, "A-17", []string{"fruit", "fresh"}, true, 1700000000, "keep cool"}

// memory answers from memory as DynamoDB would answer a free lock, so that
// only the client's own time is measured.
type memory struct{ acquired, read []byte }

func newMemory() (*memory, error) {
	item, err := attributevalue.MarshalMap(sample)
	if err != nil {
		return nil, err
	}
	wire := map[string]any{}
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			wire[name] = map[string]any{"S": v.Value}
		case *types.AttributeValueMemberN:
			wire[name] = map[string]any{"N": v.Value}
		case *types.AttributeValueMemberBOOL:
			wire[name] = map[string]any{"BOOL": v.Value}
		case *types.AttributeValueMemberL:
			wire[name] = map[string]any{"L": []any{map[string]any{"S": "fruit"}, map[string]any{"S": "fresh"}}}
		default:
			return nil, fmt.Errorf("unexpected %T", v)
		}
	}
	wire["version"], wire["writers"] = map[string]any{"N": "12"}, map[string]any{"B": make([]byte, 64)}
	read, err := json.Marshal(map[string]any{"Item": wire})
	if err != nil {
		return nil, err
	}
	until := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	for name, n := range map[string]string{"lockTime": until, "lockLease": "30", "lockHeld": "1700000000000001", "lockToken": "1700000000000001", "lockStolen": "0"} {
		wire[name] = map[string]any{"N": n}
	}
	wire["lockedBy"] = map[string]any{"S": "host/1#AAAAAAAAAAAAAAAAAAAAAA"}
	body, err := json.Marshal(map[string]any{"Attributes": wire})
	return &memory{body, read}, err
}

func (m *memory) answer(body []byte) []byte {
	if bytes.Contains(body, []byte(`"ALL_NEW"`)) {
		return m.acquired
	}
	if bytes.Contains(body, []byte(`"ConsistentRead"`)) {
		return m.read
	}
	return []byte("{}")
}

// fromMemory is a client that is answered by a memory.
func fromMemory(b *testing.B) *dynamodb.Client {
	b.Helper()
	return dynamodb.New(dynamodb.Options{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		HTTPClient: rig.Must(newMemory())(b), BaseEndpoint: aws.String("http://memory.invalid")})
}

// Do is an HTTP client without a network.
func (m *memory) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	answer := m.answer(body)
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: http.Header{},
		ContentLength: int64(len(answer)), Body: io.NopCloser(bytes.NewReader(answer))}, nil
}

// ServeHTTP answers over a network.
func (m *memory) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := m.answer(body)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(answer)), 10))
	w.Header().Set("X-Amzn-Requestid", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ")
	_, _ = w.Write(answer)
}

// serve is a process that answers from memory and tells its address, so that what
// the answering costs is not the client's.
func serve([]string) error {
	m, err := newMemory()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Println("http://" + listener.Addr().String()); err != nil {
		return err
	}
	return http.Serve(listener, m) //nolint:gosec // a test's own, and killed with it
}

// network is what the sides are measured over.
type network struct {
	name   string
	client *dynamodb.Client
}

func networks(b *testing.B) []network {
	server := rig.Child(b)
	server.Stdout = nil
	out := rig.Must(server.StdoutPipe())(b)
	rig.Is(b, server.Start())
	b.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	address := strings.TrimSpace(rig.Must(bufio.NewReader(out).ReadString('\n'))(b))
	options := dynamodb.Options{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	return []network{
		{"memory", fromMemory(b)},
		{"http", dynamodb.New(options, func(o *dynamodb.Options) { o.BaseEndpoint = &address })},
	}
}

// BenchmarkLockedChange compares a locked change with two requests written by hand:
// with the shortest texts, and with the texts of the library, whose conditions ask for
// more and which send names beside the texts. The library is measured with a client
// that it asks by its methods, and with one whose requests it sends directly. All sides
// run in turn, in blocks that end with the garbage collector's work for them, and are
// compared by the processor's time, so that the ratio holds on a noisy machine.
func BenchmarkLockedChange(b *testing.B) {
	for _, n := range networks(b) {
		b.Run(n.name, func(b *testing.B) { lockedChange(b, n.client) })
	}
}

func lockedChange(b *testing.B, client *dynamodb.Client) {
	seen := &recorder{Client: client}
	rig.Is(b, change(b, seen)())
	sides := []struct {
		name string
		do   func() error
	}{
		{"by-hand", func() error { return lockedChangeByHand(b.Context(), client) }},
		{"same-requests", func() error { return sameRequestsByHand(b.Context(), client, seen.sent) }},
		{"dynahold-by-methods", change(b, struct{ *dynamodb.Client }{client})},
		{"dynahold", change(b, client)},
	}
	for _, side := range sides {
		b.Run(side.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := side.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("ratio", func(b *testing.B) {
		var spent [4][]float64 // of each side, by block
		for b.Loop() {
			for i, side := range sides {
				runtime.GC()
				began := processorTime(b)
				for range 300 {
					if err := side.do(); err != nil {
						b.Fatal(err)
					}
				}
				runtime.GC()
				spent[i] = append(spent[i], float64(processorTime(b)-began))
			}
		}
		ratio := func(of, to int) float64 {
			all := make([]float64, len(spent[of]))
			for i := range all {
				all[i] = spent[of][i] / spent[to][i]
			}
			slices.Sort(all)
			return all[len(all)/2]
		}
		b.ReportMetric(ratio(2, 0), "by-methods-x-by-hand")
		b.ReportMetric(ratio(2, 1), "by-methods-x-same-requests")
		b.ReportMetric(ratio(3, 0), "x-by-hand")
		b.ReportMetric(ratio(3, 1), "x-same-requests")
	})
}

// BenchmarkOptimisticChange is a change without a lock, from memory. In its profile
// stands what a write spends on being looked for by its process (witness.go).
func BenchmarkOptimisticChange(b *testing.B) {
	type versioned struct {
		product
		Version int64 `dynamodbav:"version" repo:"version"`
	}
	table := rig.Must(repo.NewTable[versioned](fromMemory(b), "table", repo.TableConfig{}))(b)
	r := rig.Must(optimistic.New(table, optimistic.Config{}))(b)
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.Update(b.Context(), repo.Key{Partition: "apple"}, func(_ context.Context, v *versioned) error { v.Stock--; return nil })
		rig.Is(b, err)
	}
}

// change is the library's locked change with a client.
func change(b *testing.B, client repo.Client) func() error {
	table := rig.Must(repo.NewTable[product](client, "table", repo.TableConfig{}))(b)
	r := rig.Must(pessimistic.New(table, pessimistic.Config{}))(b)
	return func() error {
		_, err := r.Update(b.Context(), repo.Key{Partition: "apple"}, func(_ context.Context, p *product) error { p.Stock--; return nil })
		return err
	}
}

// recorder keeps the first two writes that it is asked for.
type recorder struct {
	*dynamodb.Client
	sent []dynamodb.UpdateItemInput
}

func (r *recorder) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if len(r.sent) < 2 {
		r.sent = append(r.sent, *in)
	}
	return r.Client.UpdateItem(ctx, in, o...)
}

// sameRequestsByHand is lockedChangeByHand with the texts, names and values of the
// requests that the library has sent: those texts fixed in the program, those values
// made anew as far as they differ from call to call.
func sameRequestsByHand(ctx context.Context, client *dynamodb.Client, sent []dynamodb.UpdateItemInput) error {
	now := time.Now()
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "apple"}}
	me := &types.AttributeValueMemberS{Value: "host/1#" + rand.Text()}
	acquire := sent[0]
	acquire.Key = key
	acquire.ExpressionAttributeValues = maps.Clone(acquire.ExpressionAttributeValues)
	for name, value := range map[string]types.AttributeValue{
		":me":      me,
		":until":   &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Add(30*time.Second).Unix(), 10)},
		":floor":   &types.AttributeValueMemberN{Value: strconv.FormatInt(now.UnixMicro(), 10)},
		":before":  &types.AttributeValueMemberN{Value: strconv.FormatInt(now.UnixMicro()-1, 10)},
		":expired": &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Unix()-1, 10)},
	} {
		acquire.ExpressionAttributeValues[name] = value
	}
	out, err := client.UpdateItem(ctx, &acquire)
	if err != nil {
		return err
	}
	var p product
	if err := attributevalue.UnmarshalMap(out.Attributes, &p); err != nil {
		return err
	}
	p.Stock--
	item, err := attributevalue.MarshalMap(p)
	if err != nil {
		return err
	}
	commit := sent[1]
	commit.Key, commit.ExpressionAttributeNames = key, maps.Clone(commit.ExpressionAttributeNames)
	commit.ExpressionAttributeValues = map[string]types.AttributeValue{
		":v0": item["stock"], ":v1": me, ":v2": out.Attributes["lockHeld"],
		":v3": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Unix(), 10)},
	}
	_, err = client.UpdateItem(ctx, &commit)
	return err
}

// lockedChangeByHand takes, changes and releases as the library does, with short
// expressions fixed in the program and attributevalue for the struct, and judges nothing.
func lockedChangeByHand(ctx context.Context, client *dynamodb.Client) error {
	now := time.Now()
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "apple"}}
	me := &types.AttributeValueMemberS{Value: "host/1#" + rand.Text()}
	out, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String("t"), Key: key,
		UpdateExpression: aws.String("SET lockedBy = :me, lockTime = :until, lockLease = :lease, " +
			"lockToken = if_not_exists(lockToken, :floor) + :one, lockHeld = if_not_exists(lockToken, :floor) + :one, " +
			"lockStolen = if_not_exists(lockHeld, if_not_exists(lockStolen, :floor))"),
		ConditionExpression: aws.String("attribute_exists(id) AND attribute_not_exists(lockStub) AND attribute_not_exists(tombstone) AND " +
			"(attribute_not_exists(lockTime) OR lockTime < :expired)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":me":      me,
			":until":   &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Add(30*time.Second).Unix(), 10)},
			":lease":   &types.AttributeValueMemberN{Value: "30"},
			":floor":   &types.AttributeValueMemberN{Value: strconv.FormatInt(now.UnixMicro(), 10)},
			":one":     &types.AttributeValueMemberN{Value: "1"},
			":expired": &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Unix()-1, 10)},
		},
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return err
	}
	var p product
	if err := attributevalue.UnmarshalMap(out.Attributes, &p); err != nil {
		return err
	}
	p.Stock--
	item, err := attributevalue.MarshalMap(p)
	if err != nil {
		return err
	}
	_, err = client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String("t"), Key: key,
		UpdateExpression:    aws.String("SET stock = :stock REMOVE lockedBy, lockTime, lockLease, lockHeld"),
		ConditionExpression: aws.String("lockedBy = :me AND lockHeld = :token AND lockTime > :now"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":stock": item["stock"], ":me": me, ":token": out.Attributes["lockHeld"],
			":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Unix(), 10)},
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}
