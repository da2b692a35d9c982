package direct_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynahold/dynahold/direct"
	"github.com/dynahold/dynahold/internal/ddb"
)

// reply answers the nth request of a client, from 0.
type reply func(n int, req *http.Request) (*http.Response, error)

// network is an HTTP client that answers, and notes what it was sent.
type network struct {
	answer reply
	sent   []request
	wrong  []error // signatures
}

type request struct {
	header http.Header
	url    string
	body   []byte
	noted  string // by the SDK, in the context
	bySDK  bool   // its middleware stands on the stack
}

func (n *network) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	ctx := req.Context()
	noted := fmt.Sprint(middleware.GetServiceID(ctx), middleware.GetOperationName(ctx), awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx), awsmiddleware.GetRegion(ctx), ctx.Value(usersKey{}))
	if err := n.verify(req, body); err != nil {
		return nil, err
	}
	n.sent = append(n.sent, request{req.Header.Clone(), req.Method + req.URL.String() + req.Host + strconv.FormatInt(req.ContentLength, 10), body, noted, middlewareOnStack()})
	return n.answer(len(n.sent)-1, req)
}

// secrets are those of the keys that tests have, by their first letters.
var secrets = map[string]string{"a": "b", "c": "d"}

// verify lets the SDK's signer sign a request once more, and compares.
func (n *network) verify(req *http.Request, body []byte) error {
	got := req.Header.Get("Authorization")
	credential := strings.Split(strings.TrimPrefix(got, "AWS4-HMAC-SHA256 Credential="), "/")
	secret, ours := secrets[credential[0][:1]]
	signed, err := time.Parse("20060102T150405Z", req.Header.Get("X-Amz-Date"))
	if !ours || err != nil {
		return err // of an engine
	}
	again := req.Clone(req.Context())
	again.Header.Del("Authorization")
	hash := sha256.Sum256(body)
	c := aws.Credentials{AccessKeyID: credential[0], SecretAccessKey: secret, SessionToken: req.Header.Get("X-Amz-Security-Token")}
	err = v4.NewSigner().SignHTTP(req.Context(), c, again, hex.EncodeToString(hash[:]), "dynamodb", credential[2], signed)
	if err == nil && again.Header.Get("Authorization") != got {
		err = fmt.Errorf("signed %s, by the SDK's signer %s", got, again.Header.Get("Authorization"))
		n.wrong = append(n.wrong, err)
	}
	return err
}

// usersKey is of a value in a context of a user.
type usersKey struct{}

func middlewareOnStack() bool {
	var pcs [128]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "smithy-go/middleware.") {
			return true
		}
		if !more {
			return false
		}
	}
}

// says is an answer as DynamoDB gives it.
func says(status int, body string, header ...string) *http.Response {
	h := http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}, "X-Amz-Crc32": {strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10)}, "X-Amzn-Requestid": {"ID"}}
	for i := 0; i+1 < len(header); i += 2 {
		if h.Del(header[i]); header[i+1] != "" {
			h.Set(header[i], header[i+1])
		}
	}
	return &http.Response{StatusCode: status, Status: strconv.Itoa(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}
}

const stored = `{"id":{"S":"p"},"n":{"N":"1"}}`

// whole answers every request as if it were granted.
func whole(req *http.Request) *http.Response {
	if strings.HasSuffix(req.Header.Get("X-Amz-Target"), "GetItem") {
		return says(http.StatusOK, `{"Item":`+stored+`}`)
	}
	return says(http.StatusOK, `{"Attributes":`+stored+`}`)
}

// plainly is a sender with a plain client over a network; by its methods, if so asked.
func plainly(n *network, byMethods bool, options ...func(*dynamodb.Options)) *ddb.Table {
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1", HTTPClient: n, Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("a", "b", "c"))},
		append([]func(*dynamodb.Options){attempts(3)}, options...)...)
	s := &ddb.Table{Client: client, Name: "t", Timeout: time.Second, Classify: asIs}
	if sender, err := direct.Client(client); err == nil && !byMethods {
		s.Client = sender
	}
	return s
}

var keyOfP = ddb.Item{"id": ddb.Text("p")}

// calls are the operations that are sent directly.
var calls = map[string]func(context.Context, *ddb.Table) ddb.Result{
	"GetItem": func(ctx context.Context, s *ddb.Table) ddb.Result { return s.Read(ctx, keyOfP, ddb.Options{}) },
	"UpdateItem": func(ctx context.Context, s *ddb.Table) ddb.Result {
		in := add(s.Name, "p")
		in.ReturnValues = types.ReturnValueAllNew
		for i := range 8 { // in an order that the SDK makes anew each time
			in.ExpressionAttributeValues[":"+strconv.Itoa(i)] = ddb.Text("x")
		}
		return s.Update(ctx, in, ddb.Options{NoGrace: true})
	},
}

// compared is what comes of a call whose requests are answered so, by the SDK and
// directly, after a first call that was granted.
func compared(t *testing.T, call func(context.Context, *ddb.Table) ddb.Result, answer reply, options ...func(*dynamodb.Options)) (bySDK, directly *network) {
	t.Helper()
	var told [2]ddb.Result
	var nets [2]*network
	for i, byMethods := range []bool{true, false} {
		n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) { return whole(req), nil }}
		s := plainly(n, byMethods, options...)
		call(t.Context(), s)
		n.sent, n.answer = nil, answer
		told[i], nets[i] = call(t.Context(), s), n
		for j, r := range n.sent {
			if !bytes.Equal(r.body, n.sent[0].body) {
				t.Errorf("attempt %d has another body than the first", j)
			}
		}
	}
	if diff := cmp.Diff(told[0], told[1], cmpopts.IgnoreFields(ddb.Result{}, "Sent", "Err"), values); diff != "" {
		t.Errorf("by the SDK (-), directly (+):\n%s", diff)
	}
	if a, b := fmt.Sprint(told[0].Err), fmt.Sprint(told[1].Err); a != b || len(nets[0].sent) != len(nets[1].sent) {
		t.Errorf("by the SDK %d requests, %s\ndirectly %d requests, %s", len(nets[0].sent), a, len(nets[1].sent), b)
	}
	if err := errors.Join(slices.Concat(nets[0].wrong, nets[1].wrong)...); err != nil {
		t.Error(err)
	}
	return nets[0], nets[1]
}

// values compares values of attributes, which have unexported fields.
var values = cmp.Comparer(func(a, b ddb.Item) bool { return reflect.DeepEqual(a, b) })

// granted makes a call that is granted, after which the next may be sent directly.
func granted(t *testing.T, op string, s *ddb.Table) {
	t.Helper()
	if res := calls[op](t.Context(), s); res.Err != nil {
		t.Fatal(res.Err)
	}
}

// givesUp begins the part of Amz-Sdk-Request that says when the caller gives up.
const givesUp = "; ttl="

// alike compares two requests but for what no two requests have in common: an id, the
// time, and with them the signature. Bodies may differ in the order of names.
func alike(t *testing.T, a, b request) {
	t.Helper()
	for _, r := range []request{a, b} {
		if id := r.header.Get("Amz-Sdk-Invocation-Id"); len(id) != 36 {
			t.Errorf("invocation %q", id)
		}
		if _, err := time.Parse("20060102T150405Z", r.header.Get("X-Amz-Date")); err != nil {
			t.Error(err)
		}
		r.header.Del("Amz-Sdk-Invocation-Id")
		r.header.Del("X-Amz-Date")
		if signed, _, _ := strings.Cut(r.header.Get("Authorization"), ", Signature="); len(signed) > 0 {
			r.header.Set("Authorization", signed)
		}
	}
	// When its caller gives up is told by the SDK alone, and only after an answer that was
	// dated ahead of our clock, as by a computer whose clock was set back meanwhile.
	tries, _, _ := strings.Cut(a.header.Get("Amz-Sdk-Request"), givesUp)
	a.header.Set("Amz-Sdk-Request", tries)
	if diff := cmp.Diff(a.header, b.header); diff != "" || a.url != b.url || a.noted != b.noted {
		t.Errorf("by the SDK %s %s, directly %s %s: headers (-), (+):\n%s", a.url, a.noted, b.url, b.noted, diff)
	}
	var as, bs any
	if json.Unmarshal(a.body, &as) != nil || json.Unmarshal(b.body, &bs) != nil || !cmp.Equal(as, bs) {
		t.Errorf("the SDK writes %s\ndirectly %s", a.body, b.body)
	}
}

// broken is a connection that ended in the middle of an answer.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func asIs(err error) error { return err }

// attempts is a policy of so many, with short sleeps.
func attempts(n int) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
			so.MaxAttempts, so.MaxBackoff, so.RateLimiter = n, time.Millisecond, ratelimit.None
		})
	}
}

// add counts up on an item that must not have been counted on.
func add(table, id string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &table, Key: ddb.Item{"id": ddb.Text(id)},
		UpdateExpression:                    aws.String("ADD n :one"),
		ConditionExpression:                 aws.String("attribute_not_exists(n)"),
		ExpressionAttributeValues:           ddb.Item{":one": ddb.Number("1")},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}
