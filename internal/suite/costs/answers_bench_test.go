package costs_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
)

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
		return ofItem(body, m.acquired)
	}
	if bytes.Contains(body, []byte(`"ConsistentRead"`)) {
		return m.read
	}
	return []byte("{}")
}

// ofItem is an answer of the item that was asked for.
func ofItem(body, answer []byte) []byte {
	asked, answered := idIn(body), idIn(answer)
	if bytes.Equal(asked, answered) {
		return answer
	}
	return bytes.Replace(answer, answered, asked, 1)
}

// idIn is the text of the first key in a body, with what stands before it.
func idIn(body []byte) []byte {
	begin := []byte(`"id":{"S":"`)
	at := max(0, bytes.Index(body, begin))
	return body[at : at+len(begin)+bytes.IndexByte(body[at+len(begin):], '"')]
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
	dials  atomic.Int64 // connections that were opened
}

func networks(b *testing.B) []*network {
	server := rig.Child(b)
	server.Stdout = nil
	out := rig.Must(server.StdoutPipe())(b)
	rig.Is(b, server.Start())
	b.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	address := strings.TrimSpace(rig.Must(bufio.NewReader(out).ReadString('\n'))(b))
	over := &network{name: "http"}
	over.client = dynamodb.New(dynamodb.Options{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), BaseEndpoint: &address,
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			dial := t.DialContext
			t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				over.dials.Add(1)
				return dial(ctx, network, address)
			}
		})})
	return []*network{{name: "memory", client: fromMemory(b)}, over}
}
