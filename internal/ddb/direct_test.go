package ddb_test

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
	"net"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
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
		append([]func(*dynamodb.Options){patience(3, ratelimit.None)}, options...)...)
	t := &ddb.Table{Client: client, Name: "t", Timeout: time.Second, Classify: asIs}
	if byMethods {
		t.Client = struct{ *dynamodb.Client }{client}
	}
	return t
}

var keyOfP = ddb.Item{"id": ddb.Text("p")}

// calls are the operations that are sent directly.
var calls = map[string]func(context.Context, *ddb.Table) ddb.Result{
	"GetItem": func(ctx context.Context, s *ddb.Table) ddb.Result { return s.Read(ctx, keyOfP, ddb.Options{}) },
	"UpdateItem": func(ctx context.Context, s *ddb.Table) ddb.Result {
		in := (&bench{table: s.Name}).add("p")
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

func TestDirectlyIsAsByTheSDK(t *testing.T) {
	failed := func(status int, code, more string, header ...string) reply {
		return func(int, *http.Request) (*http.Response, error) {
			return says(status, `{"__type":"com.amazonaws.dynamodb.v20120810#`+code+`","message":"m"`+more+`}`, header...), nil
		}
	}
	body := func(body string, header ...string) reply {
		return func(int, *http.Request) (*http.Response, error) { return says(http.StatusOK, body, header...), nil }
	}
	cut := func(status int) reply {
		return func(int, *http.Request) (*http.Response, error) {
			r := says(status, "")
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"Attributes":{"id":`), broken{}))
			return r, nil
		}
	}
	cases := map[string]reply{
		"granted": func(_ int, req *http.Request) (*http.Response, error) { return whole(req), nil },
		"granted, without a checksum": func(_ int, req *http.Request) (*http.Response, error) {
			r := whole(req)
			r.Header.Del("X-Amz-Crc32")
			return r, nil
		},
		"no item":                      body(`{}`),
		"empty":                        body(``),
		"null":                         body(`null`),
		"a wrong type":                 body(`{"Attributes":[],"Item":[]}`),
		"twice":                        body(`{"Attributes":{"a":{"S":"1"}},"Attributes":{"b":{"S":"2"}},"Item":{"a":{"S":"1"}},"Item":{"b":{"S":"2"}}}`),
		"more than one value":          body(`{"Attributes":{"a":{"S":"1","N":"2"}},"Item":{"a":{"S":"1","N":"2"}}}`),
		"an unknown kind of value":     body(`{"Attributes":{"a":{"X":"1"}},"Item":{"a":{"X":"1"}}}`),
		"more behind the end":          body(`{"Item":{},"Attributes":{}} {`),
		"a wrong checksum":             body(`{"Attributes":`+stored+`}`, "X-Amz-Crc32", "1"),
		"a checksum that is no number": body(`{"Attributes":`+stored+`}`, "X-Amz-Crc32", "one"),
		"packed":                       body("\x1f\x8b\x08", "Content-Encoding", "gzip"),
		"no content":                   func(int, *http.Request) (*http.Response, error) { return says(http.StatusNoContent, ""), nil },
		"moved": func(int, *http.Request) (*http.Response, error) {
			return says(http.StatusFound, "", "Location", "/elsewhere"), nil
		},
		"cut":                         cut(http.StatusOK),
		"an error that is cut":        cut(http.StatusBadRequest),
		"condition, with an image":    failed(400, "ConditionalCheckFailedException", `,"Item":`+stored),
		"condition, without an image": failed(400, "ConditionalCheckFailedException", ""),
		"condition, a wrong checksum": failed(400, "ConditionalCheckFailedException", `,"Item":`+stored, "X-Amz-Crc32", "1"),
		"condition, by the header":    failed(400, "Other", "", "X-Amzn-Errortype", "ConditionalCheckFailedException"),
		"condition, a broken image":   failed(400, "ConditionalCheckFailedException", `,"Item":{"a":7}`),
		"throttled":                   failed(400, "ProvisionedThroughputExceededException", ""),
		"refused":                     failed(400, "ValidationException", ""),
		"not allowed":                 failed(400, "AccessDeniedException", ""),
		"a wrong signature":           failed(403, "InvalidSignatureException", ""),
		"no table":                    failed(400, "ResourceNotFoundException", ""),
		"in a transaction":            failed(400, "TransactionConflictException", ""),
		"conflicting regions":         failed(400, "ReplicatedWriteConflictException", ""),
		"unknown to the SDK":          failed(400, "NeverHeardOfException", ""),
		"broken down":                 failed(500, "InternalServerError", ""),
		"unavailable":                 func(int, *http.Request) (*http.Response, error) { return says(503, "<html>"), nil },
		"reset": func(int, *http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		},
		"no connection": func(int, *http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		},
		"no response at all": func(int, *http.Request) (*http.Response, error) { return nil, errors.New("gone") },
		"no answer in time": func(_ int, req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		},
		"reset, then granted": func(n int, req *http.Request) (*http.Response, error) {
			if n < 2 {
				return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
			}
			return whole(req), nil
		},
		"broken down, then condition": func(n int, _ *http.Request) (*http.Response, error) {
			if n == 0 {
				return says(500, `{"__type":"InternalServerError"}`), nil
			}
			return says(400, `{"__type":"ConditionalCheckFailedException","Item":`+stored+`}`), nil
		},
	}
	for name, answer := range cases {
		for op, call := range calls {
			for _, strict := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, strict %v", op, name, strict), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						bySDK, directly := compared(t, call, answer, func(o *dynamodb.Options) { o.DisableValidateResponseChecksum = !strict })
						for i := range directly.sent {
							if directly.sent[i].bySDK || !bySDK.sent[i].bySDK {
								t.Errorf("attempt %d was not sent as it should", i)
							}
							alike(t, bySDK.sent[i], directly.sent[i])
						}
					})
				})
			}
		}
	}
}

// granted makes a call that is granted, after which the next may be sent directly.
func granted(t *testing.T, op string, s *ddb.Table) {
	t.Helper()
	if res := calls[op](t.Context(), s); res.Err != nil {
		t.Fatal(res.Err)
	}
}

// A request without a key is refused before it is sent.
func TestNoKeyIsRefusedAlike(t *testing.T) {
	calls := map[string]func(context.Context, *ddb.Table) ddb.Result{
		"GetItem": func(ctx context.Context, s *ddb.Table) ddb.Result { return s.Read(ctx, nil, ddb.Options{}) },
		"UpdateItem": func(ctx context.Context, s *ddb.Table) ddb.Result {
			return s.Update(ctx, &dynamodb.UpdateItemInput{TableName: &s.Name}, ddb.Options{})
		},
	}
	for op, call := range calls {
		var told [2]ddb.Result
		for i, byMethods := range []bool{true, false} {
			n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) { return whole(req), nil }}
			s := plainly(n, byMethods)
			granted(t, op, s)
			n.sent = nil
			if told[i] = call(t.Context(), s); len(n.sent) > 0 {
				t.Errorf("%s: sent %s", op, n.sent[0].body)
			}
		}
		if told[0].Outcome != ddb.Refused || told[1].Outcome != ddb.Refused || told[0].Err.Error() != told[1].Err.Error() {
			t.Errorf("%s: %v, %v", op, told[0].Err, told[1].Err)
		}
	}
}

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
	if diff := cmp.Diff(a.header, b.header); diff != "" || a.url != b.url || a.noted != b.noted {
		t.Errorf("by the SDK %s %s, directly %s %s: headers (-), (+):\n%s", a.url, a.noted, b.url, b.noted, diff)
	}
	var as, bs any
	if json.Unmarshal(a.body, &as) != nil || json.Unmarshal(b.body, &bs) != nil || !cmp.Equal(as, bs) {
		t.Errorf("the SDK writes %s\ndirectly %s", a.body, b.body)
	}
}

// Whatever a client is asked for, its second request is like its first, which the SDK
// has made.
func TestRequestsAreAlike(t *testing.T) {
	account := func(mode aws.AccountIDEndpointMode) func(*dynamodb.Options) {
		return func(o *dynamodb.Options) {
			o.AccountIDEndpointMode = mode
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b", AccountID: "123456789012"}, nil
			})
		}
	}
	for name, c := range map[string]struct {
		option func(*dynamodb.Options)
		host   string
		bySDK  bool
	}{
		"usual":                  {func(*dynamodb.Options) {}, "https://dynamodb.eu-west-1.amazonaws.com/", false},
		"for one account":        {account(aws.AccountIDEndpointModePreferred), "https://123456789012.ddb.eu-west-1.amazonaws.com/", false},
		"the account's required": {account(aws.AccountIDEndpointModeRequired), "https://123456789012.ddb.eu-west-1.amazonaws.com/", false},
		"no account's":           {account(aws.AccountIDEndpointModeDisabled), "https://dynamodb.eu-west-1.amazonaws.com/", false},
		"FIPS":                   {func(o *dynamodb.Options) { o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled }, "https://dynamodb-fips.eu-west-1.amazonaws.com/", false},
		"dual stack":             {func(o *dynamodb.Options) { o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateEnabled }, "https://dynamodb.eu-west-1.api.aws/", false},
		"a path":                 {func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://127.0.0.1:8000/a%20b/c") }, "http://127.0.0.1:8000/a%20b/c", false},
		"a usual port":           {func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://127.0.0.1:80") }, "http://127.0.0.1:80/", false},
		"without TLS":            {func(o *dynamodb.Options) { o.EndpointOptions.DisableHTTPS = true }, "http://dynamodb.eu-west-1.amazonaws.com/", false},
		"a name":                 {func(o *dynamodb.Options) { o.AppID = "shop" }, "https://dynamodb.eu-west-1.amazonaws.com/", false},
		"adaptive":               {func(o *dynamodb.Options) { o.Retryer = retry.NewAdaptiveMode() }, "https://dynamodb.eu-west-1.amazonaws.com/", false},
		// Its signatures are for another region than the client's.
		"the region local": {func(o *dynamodb.Options) { o.Region = "local" }, "http://localhost:8000/", false},
		"a hook": {func(o *dynamodb.Options) {
			o.APIOptions = append(o.APIOptions, func(*middleware.Stack) error { return nil })
		}, "https://dynamodb.eu-west-1.amazonaws.com/", true},
	} {
		for op, call := range calls {
			t.Run(op+", "+name, func(t *testing.T) {
				t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
				n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) { return whole(req), nil }}
				s := plainly(n, false, c.option)
				for _, trace := range []string{"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=a b", "Root=2"} {
					t.Setenv("_X_AMZN_TRACE_ID", trace)
					for range 2 {
						if res := call(context.WithValue(t.Context(), usersKey{}, "user's"), s); res.Err != nil {
							t.Fatal(res.Err)
						}
					}
					last := n.sent[len(n.sent)-2:]
					alike(t, last[0], last[1])
					if last[1].bySDK != c.bySDK || !strings.HasPrefix(last[1].url, "POST"+c.host) || last[1].header.Get("X-Amzn-Trace-Id") != strings.ReplaceAll(trace, " ", "%20") {
						t.Errorf("by the SDK is %v, to %s", last[1].bySDK, last[1].url)
					}
				}
			})
		}
	}
}

// broken is a connection that ended in the middle of an answer.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// FuzzDirectly gives both ways the same answers, and lets them send the same values.
func FuzzDirectly(f *testing.F) {
	for _, body := range []string{"", "{}", "null", `{"Attributes":` + stored + `}`, `{"Item":{"a":{"L":[{"M":{"b":{"NULL":true}}},{"B":"AQ=="},{"SS":["x"]},{"NS":["1"]},{"BS":["AQ=="]},{"BOOL":false}]}}}`,
		`{"Item":{"a":{"S":"\ud800"}}}`, `{"Item":{"a":{"B":"!"}}}`, `{"Attributes":{"a":{"S":null}}}`, `{"Attributes":{"a":null}}`, `{"Item":{"a":{"S":"1"},"a":{"S":"2"}}}`, `{"Item":{"a":{}}}`, `{"x":[{}],"Item":{}}`,
		`{"__type":"ConditionalCheckFailedException","Item":` + stored + `}`, strings.Repeat(`{"Item":`, 500), `{"Attributes":{"a":` + strings.Repeat(`{"L":[`, 200), "{\"Item\":{\"a\":{\"S\":\"\xff\"}}}", `{"Item":{"a":{"N":"1e400"}}} x`} {
		for _, status := range []int{200, 400} {
			f.Add(status, body, true, "text", []byte("bytes"))
		}
	}
	f.Fuzz(func(t *testing.T, status int, body string, checked bool, text string, data []byte) {
		if status < 100 || status > 999 {
			t.Skip()
		}
		item := ddb.Item{":a": ddb.Text(text), ":b": &types.AttributeValueMemberB{Value: data}, ":c": ddb.Number(text), ":d": &types.AttributeValueMemberBOOL{Value: checked},
			":e": &types.AttributeValueMemberL{Value: []types.AttributeValue{ddb.Text(text), &types.AttributeValueMemberNULL{Value: true}}},
			":f": &types.AttributeValueMemberM{Value: ddb.Item{text: &types.AttributeValueMemberBS{Value: [][]byte{data, nil}}}},
			":g": &types.AttributeValueMemberSS{Value: []string{text, ""}}, ":h": &types.AttributeValueMemberNS{}, ":i": &types.AttributeValueMemberL{}, ":j": &types.AttributeValueMemberM{}}
		update := func(ctx context.Context, s *ddb.Table) ddb.Result {
			return s.Update(ctx, &dynamodb.UpdateItemInput{TableName: &s.Name, Key: ddb.Item{text: ddb.Text(text)}, ExpressionAttributeValues: item, UpdateExpression: &text}, ddb.Options{NoGrace: true, Single: true})
		}
		get := func(ctx context.Context, s *ddb.Table) ddb.Result {
			return s.Read(ctx, keyOfP, ddb.Options{Single: true})
		}
		answer := func(int, *http.Request) (*http.Response, error) {
			r := says(status, body)
			if !checked {
				r.Header.Del("X-Amz-Crc32")
			}
			return r, nil
		}
		for _, call := range []func(context.Context, *ddb.Table) ddb.Result{get, update} {
			bySDK, directly := compared(t, call, answer)
			if len(bySDK.sent) > 0 && len(directly.sent) > 0 {
				alike(t, bySDK.sent[0], directly.sent[0])
			}
		}
	})
}

// While the service's clock is far away the SDK makes the requests: it learns from the
// first refusal by how much, also if that request was not its own.
func TestClocksApart(t *testing.T) {
	for _, apart := range []time.Duration{0, -30 * time.Second, 2 * time.Minute, 10 * time.Minute, -10 * time.Minute} {
		for op, call := range calls {
			synctest.Test(t, func(t *testing.T) {
				var skew time.Duration
				n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) {
					now := time.Now().Add(skew)
					resp := whole(req)
					if dated, err := time.Parse("20060102T150405Z", req.Header.Get("X-Amz-Date")); err != nil || now.Sub(dated).Abs() > 5*time.Minute {
						resp = says(400, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired"}`)
					}
					resp.Header.Set("Date", now.UTC().Format(http.TimeFormat))
					return resp, nil
				}}
				s := plainly(n, false)
				for range 2 {
					if res := call(t.Context(), s); res.Err != nil {
						t.Fatal(res.Err)
					}
				}
				skew = apart
				first := len(n.sent)
				for range 3 {
					if res := call(t.Context(), s); res.Err != nil {
						t.Fatalf("%s, %v apart: %v", op, apart, res.Err)
					}
				}
				sent, want := n.sent[first:], 3
				if apart.Abs() > 5*time.Minute {
					want = 4
				}
				if len(sent) != want {
					t.Errorf("%s, %v apart: %d requests, want %d", op, apart, len(sent), want)
				}
				for i, r := range sent {
					if far := apart.Abs() > time.Minute; r.bySDK != (far && i > 0) {
						t.Errorf("%s, %v apart: by the SDK is %v for request %d", op, apart, r.bySDK, i)
					}
				}
				skew = 0 // and back
				for range 3 {
					if res := call(t.Context(), s); res.Err != nil {
						t.Fatalf("%s, together again: %v", op, res.Err)
					}
				}
				if n.sent[len(n.sent)-1].bySDK {
					t.Errorf("%s: still by the SDK, together again", op)
				}
			})
		}
	}
}

// tokens counts what is asked of a client's policy.
type tokens struct {
	aws.RetryerV2
	asked []string
	limit error
}

func (p *tokens) GetAttemptToken(context.Context) (func(error) error, error) {
	p.asked = append(p.asked, "attempt")
	return func(err error) error { p.asked = append(p.asked, fmt.Sprintf("ended %v", err == nil)); return nil }, p.limit
}

func (p *tokens) GetRetryToken(context.Context, error) (func(error) error, error) {
	p.asked = append(p.asked, "retry")
	return func(error) error { return nil }, nil
}

// provider counts what is asked of a client's credentials, and renews them.
type provider struct {
	asked int
	next  func(n int) (aws.Credentials, error)
}

func (p *provider) Retrieve(context.Context) (aws.Credentials, error) {
	p.asked++
	return p.next(p.asked)
}

// The policy and the credentials are asked as by the SDK.
func TestPolicyAndCredentialsAreAskedAlike(t *testing.T) {
	broken := errors.New("no credentials today")
	good := aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}
	other := aws.Credentials{AccessKeyID: "c", SecretAccessKey: "d"}
	session := aws.Credentials{AccessKeyID: "c", SecretAccessKey: "d", SessionToken: "e"}
	down := func(n int, req *http.Request) (*http.Response, error) {
		if n == 0 {
			return says(500, `{"__type":"InternalServerError"}`), nil
		}
		return whole(req), nil
	}
	for name, c := range map[string]struct {
		answer reply
		next   aws.Credentials
		fails  error
		limit  error
	}{
		"granted":           {answer: func(_ int, req *http.Request) (*http.Response, error) { return whole(req), nil }, next: good},
		"tried again":       {answer: down, next: good},
		"renewed":           {answer: down, next: other},
		"with a session":    {answer: down, next: session},
		"no credentials":    {answer: down, fails: broken},
		"held by the limit": {answer: down, next: good, limit: broken},
	} {
		t.Run(name, func(t *testing.T) {
			var asked [2][]string
			var keys [2][]string
			var times [2]int
			for i, byMethods := range []bool{true, false} {
				n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) { return whole(req), nil }}
				policy := &tokens{RetryerV2: retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })}
				creds := &provider{next: func(int) (aws.Credentials, error) { return good, nil }}
				s := plainly(n, byMethods, func(o *dynamodb.Options) { o.Retryer, o.Credentials = policy, creds })
				calls["UpdateItem"](t.Context(), s)
				n.sent, n.answer, policy.asked, creds.asked = nil, c.answer, nil, 0
				policy.limit, creds.next = c.limit, func(int) (aws.Credentials, error) { return c.next, c.fails }
				calls["UpdateItem"](t.Context(), s)
				asked[i], times[i] = policy.asked, creds.asked
				for _, r := range n.sent {
					signer, _, _ := strings.Cut(r.header.Get("Authorization"), "/")
					keys[i] = append(keys[i], signer+r.header.Get("X-Amz-Security-Token"))
				}
			}
			// An example of the SDK's is compared with the credentials once more.
			if extra := times[1] - times[0]; extra < 0 || extra > 1 || extra == 1 && c.next.SessionToken == "" {
				t.Errorf("credentials asked for %d times by the SDK, %d directly", times[0], times[1])
			}
			if !reflect.DeepEqual(asked[0], asked[1]) || !reflect.DeepEqual(keys[0], keys[1]) {
				t.Errorf("by the SDK %v %v, directly %v %v", asked[0], keys[0], asked[1], keys[1])
			}
		})
	}
}

// A key for signatures is good for one day, and for one secret.
func TestKeysEndWithTheDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) { return whole(req), nil }}
		var days int
		creds := &provider{next: func(int) (aws.Credentials, error) {
			if days%3 == 2 {
				return aws.Credentials{AccessKeyID: "c", SecretAccessKey: "d"}, nil
			}
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}}
		s := plainly(n, false, func(o *dynamodb.Options) { o.Credentials = creds })
		for ; days < 13; days++ {
			for op, call := range calls {
				if res := call(t.Context(), s); res.Err != nil {
					t.Fatalf("%s, %d half days later: %v", op, days, res.Err)
				}
			}
			time.Sleep(12 * time.Hour)
		}
		if n.sent[len(n.sent)-1].bySDK {
			t.Error("it was not sent directly")
		}
	})
}

// sourced are credentials that tell where they come from, of one account after another.
type sourced struct{ account string }

func (s *sourced) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "a" + s.account, SecretAccessKey: "b", AccountID: s.account}, nil
}

func (s *sourced) ProviderSources() []aws.CredentialSource {
	return []aws.CredentialSource{aws.CredentialSourceEnvVars}
}

// An account may have an address of its own: an example for one is none for another.
func TestAccountsHaveExamplesOfTheirOwn(t *testing.T) {
	var sent [2][]request
	for i, byMethods := range []bool{true, false} {
		n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) { return whole(req), nil }}
		creds := &sourced{}
		s := plainly(n, byMethods, func(o *dynamodb.Options) {
			o.AccountIDEndpointMode, o.Credentials = aws.AccountIDEndpointModePreferred, creds
		})
		for _, account := range []string{"111111111111", "222222222222", "", "111111111111"} {
			creds.account = account
			for range 4 {
				if res := calls["GetItem"](t.Context(), s); res.Err != nil {
					t.Fatal(res.Err)
				}
			}
			if last := n.sent[len(n.sent)-1]; last.bySDK != byMethods {
				t.Errorf("account %q: by the SDK is %v", account, last.bySDK)
			}
		}
		sent[i] = n.sent
	}
	for i := range sent[0] {
		alike(t, sent[0][i], sent[1][i])
	}
}

// keeping is an HTTP client that keeps the body of every response.
type keeping struct {
	*network
	bodies []*http.Response
}

func (k *keeping) Do(req *http.Request) (*http.Response, error) {
	resp, err := k.network.Do(req)
	k.bodies = append(k.bodies, resp)
	return resp, err
}

// Who keeps a response does not read another's in it later.
func TestAKeptResponseHasItsOwnBody(t *testing.T) {
	k := &keeping{network: &network{answer: func(_ int, req *http.Request) (*http.Response, error) { return whole(req), nil }}}
	s := plainly(k.network, false, func(o *dynamodb.Options) { o.HTTPClient = k })
	for range 3 {
		if res := calls["GetItem"](t.Context(), s); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	for _, resp := range k.bodies {
		if body, err := io.ReadAll(resp.Body); len(body) > 0 || err != nil {
			t.Errorf("%q is left, %v", body, err)
		}
	}
}

// What the tests of all packages use is asked directly, unless they run to show that it
// makes no difference.
func TestTheEngineIsAskedDirectly(t *testing.T) {
	b := newBench(t)
	n := &network{}
	s := &ddb.Table{Name: b.table, Timeout: 10 * time.Second, Classify: asIs, Client: dynamodb.New(b.client.Options(), func(o *dynamodb.Options) {
		inner := o.HTTPClient
		n.answer = func(i int, req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			req.Body = io.NopCloser(bytes.NewReader(n.sent[i].body))
			return inner.Do(req)
		}
		o.HTTPClient = n
	})}
	for i := range 3 {
		if _, err := s.Get(t.Context(), keyOfP); err != nil || n.sent[i].bySDK != (i == 0) {
			t.Errorf("request %d: by the SDK is %v, %v", i, n.sent[i].bySDK, err)
		}
		res := s.Update(t.Context(), b.add(strconv.Itoa(i)), ddb.Options{})
		if last := n.sent[len(n.sent)-1]; res.Outcome != ddb.Applied || last.bySDK != (i == 0) {
			t.Errorf("write %d: %v, by the SDK is %v, %v", i, res.Outcome, last.bySDK, res.Err)
		}
		n.sent = slices.DeleteFunc(n.sent, func(r request) bool { return strings.HasSuffix(r.header.Get("X-Amz-Target"), "UpdateItem") })
	}
	if res := s.Update(t.Context(), b.add("0"), ddb.Options{}); res.Outcome != ddb.Condition || !ddb.Equal(res.Image["n"], ddb.Number("1")) {
		t.Errorf("%+v", res)
	}
}
