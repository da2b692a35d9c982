package direct_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/direct"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/localdb"
)

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
			synctest.Test(t, func(t *testing.T) { // in which no attempt is too slow
				bySDK, directly := compared(t, call, answer)
				if len(bySDK.sent) > 0 && len(directly.sent) > 0 {
					alike(t, bySDK.sent[0], directly.sent[0])
				}
			})
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
				last := n.sent[len(n.sent)-1]
				if last.bySDK {
					t.Errorf("%s: still by the SDK, together again", op)
				}
				// The example for it may be a request of the time when the clocks were apart.
				if tries := last.header.Get("Amz-Sdk-Request"); strings.Contains(tries, givesUp) {
					t.Errorf("%s, %v apart: repeats when another's caller gave up: %s", op, apart, tries)
				}
			})
		}
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

// Requests to a real engine are sent directly from the second of each kind on.
func TestAnEngineIsAskedDirectly(t *testing.T) {
	engine, table := localdb.Client(t), "direct"
	if _, err := engine.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	}); err != nil {
		t.Fatal(err)
	}
	n := &network{}
	sender, err := direct.Client(dynamodb.New(engine.Options(), func(o *dynamodb.Options) {
		inner := o.HTTPClient
		n.answer = func(i int, req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			req.Body = io.NopCloser(bytes.NewReader(n.sent[i].body))
			return inner.Do(req)
		}
		o.HTTPClient = n
	}))
	if err != nil {
		t.Fatal(err)
	}
	s := &ddb.Table{Name: table, Timeout: 10 * time.Second, Classify: asIs, Client: sender}
	for i := range 3 {
		if _, err := s.Get(t.Context(), keyOfP); err != nil || n.sent[i].bySDK != (i == 0) {
			t.Errorf("request %d: by the SDK is %v, %v", i, n.sent[i].bySDK, err)
		}
		res := s.Update(t.Context(), add(table, strconv.Itoa(i)), ddb.Options{})
		if last := n.sent[len(n.sent)-1]; res.Outcome != ddb.Applied || last.bySDK != (i == 0) {
			t.Errorf("write %d: %v, by the SDK is %v, %v", i, res.Outcome, last.bySDK, res.Err)
		}
		n.sent = slices.DeleteFunc(n.sent, func(r request) bool { return strings.HasSuffix(r.header.Get("X-Amz-Target"), "UpdateItem") })
	}
	if res := s.Update(t.Context(), add(table, "0"), ddb.Options{}); res.Outcome != ddb.Condition || !ddb.Equal(res.Image["n"], ddb.Number("1")) {
		t.Errorf("%+v", res)
	}
}
