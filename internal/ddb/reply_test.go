package ddb_test

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
)

// altering changes the nth answer of a client, from 0.
type altering struct {
	inner  dynamodb.HTTPClient
	n, nth int
	alter  func(resp *http.Response, body []byte) []byte
}

func (a *altering) Do(req *http.Request) (*http.Response, error) {
	resp, err := a.inner.Do(req)
	if a.n++; err != nil || a.nth >= 0 && a.n-1 != a.nth {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	body = a.alter(resp, body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, err
}

// A reply that is not whole says nothing, whatever the SDK makes of it.
func TestRepliesThatAreNotWhole(t *testing.T) {
	b := newBench(t)
	replaced := func(by string) func(*http.Response, []byte) []byte {
		return func(resp *http.Response, _ []byte) []byte {
			resp.StatusCode = http.StatusOK
			resp.Header.Del("X-Amz-Crc32")
			return []byte(by)
		}
	}
	alterations := map[string]func(*http.Response, []byte) []byte{
		"a number was changed": func(_ *http.Response, body []byte) []byte {
			return bytes.ReplaceAll(body, []byte(`"1"`), []byte(`"7"`))
		},
		"an empty refusal": func(resp *http.Response, _ []byte) []byte {
			resp.StatusCode = http.StatusForbidden
			resp.Header.Del("X-Amz-Crc32")
			return nil
		},
		"a failed condition without a body": func(resp *http.Response, _ []byte) []byte {
			resp.StatusCode = http.StatusBadRequest
			resp.Header.Del("X-Amz-Crc32")
			resp.Header.Set("X-Amzn-Errortype", "ConditionalCheckFailedException")
			return nil
		},
	}
	for name, by := range map[string]string{"empty": "", "spaces": " \r\n", "null": "null", "a text": `"moved"`, "without a checksum": "{}"} {
		alterations[name] = replaced(by) //nolint:bodyclose // it alters a response, and makes none
	}
	for name, alter := range alterations {
		t.Run(name, func(t *testing.T) {
			s, in := b.sender(t, always(fault.None), func(o *dynamodb.Options) {})
			a := &altering{inner: in, nth: 1, alter: alter}
			client, _ := s.Client.(*dynamodb.Client)
			s.Client = dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = a })
			if item, err := s.Get(t.Context(), ddb.Item{"id": ddb.Text("none")}); item != nil || err != nil {
				t.Fatal(item, err)
			}
			write := b.add(name)
			write.ReturnValues = types.ReturnValueAllNew
			b.check(t, name, in, s.Update(t.Context(), write, ddb.Options{}), ending{ddb.Condition, false, 3, "1"})
			a.n = 0
			item, err := s.Get(t.Context(), ddb.Item{"id": ddb.Text(name)})
			if err != nil || !ddb.Equal(item["n"], ddb.Number("1")) {
				t.Errorf("read %v, %v", item, err)
			}
			a.n = 1
			if item, err = s.Get(t.Context(), ddb.Item{"id": ddb.Text(name)}); err != nil || !ddb.Equal(item["n"], ddb.Number("1")) {
				t.Errorf("read %v, %v", item, err)
			}
		})
	}
	t.Run("all new, and none of it", func(t *testing.T) {
		s, in := b.sender(t, always(fault.None))
		client, _ := s.Client.(*dynamodb.Client)
		s.Client = dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = &altering{inner: in, alter: replaced("{}")} }) //nolint:bodyclose // as above
		write := b.add("all new")
		write.ReturnValues = types.ReturnValueAllNew
		b.check(t, "all new", in, s.Update(t.Context(), write, ddb.Options{}), ending{ddb.Condition, false, 2, "1"})
	})
	t.Run("always", func(t *testing.T) {
		s, in := b.sender(t, always(fault.Empty))
		res := s.Update(t.Context(), b.add("always"), ddb.Options{})
		b.check(t, "always", in, res, ending{ddb.Unknown, false, 3, ""})
		var partial *ddb.ReplyError
		if !errors.As(res.Err, &partial) {
			t.Errorf("error %v", res.Err)
		}
	})
}

// Not every server that is compatible gives checksums. One that never did is
// believed without.
func TestServersWithoutChecksums(t *testing.T) {
	b := newBench(t)
	s, in := b.sender(t, always(fault.None))
	client, _ := s.Client.(*dynamodb.Client)
	s.Client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = &altering{inner: in, nth: -1, alter: func(resp *http.Response, body []byte) []byte {
			resp.Header.Del("X-Amz-Crc32")
			return body
		}}
	})
	b.check(t, "bare", in, s.Update(t.Context(), b.add("bare"), ddb.Options{}), ending{ddb.Applied, true, 1, "1"})
	b.check(t, "bare", in, s.Update(t.Context(), b.add("bare"), ddb.Options{}), ending{ddb.Condition, true, 2, "1"})
	if item, err := s.Get(t.Context(), ddb.Item{"id": ddb.Text("none")}); item != nil || err != nil {
		t.Error(item, err)
	}
	// But not without a body.
	for _, body := range []string{"", " ", "null"} {
		s, in = b.sender(t, always(fault.None))
		client, _ := s.Client.(*dynamodb.Client)
		s.Client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
			o.HTTPClient = &altering{inner: in, alter: func(resp *http.Response, _ []byte) []byte {
				resp.Header.Del("X-Amz-Crc32")
				return []byte(body)
			}}
		})
		if item, err := s.Get(t.Context(), ddb.Item{"id": ddb.Text("bare")}); err != nil || item == nil || in.Requests() != 2 {
			t.Errorf("%q: %v, %v, %d requests", body, item, err, in.Requests())
		}
	}
	// The option of the SDK that switches their checking off is kept.
	s, in = b.sender(t, func(n int) fault.Kind { return []fault.Kind{fault.None, fault.Blank}[n] },
		func(o *dynamodb.Options) { o.DisableValidateResponseChecksum = true })
	for range 2 {
		if _, err := s.Get(t.Context(), ddb.Item{"id": ddb.Text("none")}); err != nil {
			t.Error(err)
		}
	}
	if in.Requests() != 2 {
		t.Errorf("%d requests", in.Requests())
	}
}

// All attempts of a call carry the same bytes, though the SDK writes maps in
// random order.
func TestAllAttemptsCarryTheSameBytes(t *testing.T) {
	b := newBench(t)
	values := ddb.Item{}
	for _, name := range []string{":a", ":b", ":c", ":d", ":e", ":f"} {
		values[name] = ddb.Number("1")
	}
	const cond = "attribute_not_exists(n) OR n IN (:a, :b, :c, :d, :e, :f)"
	update := &dynamodb.UpdateItemInput{TableName: &b.table, Key: ddb.Item{"id": ddb.Text("same")}, UpdateExpression: aws.String("SET n = :a"),
		ConditionExpression: aws.String(cond), ExpressionAttributeValues: values}
	remove := &dynamodb.DeleteItemInput{TableName: &b.table, Key: ddb.Item{"id": ddb.Text("same")},
		ConditionExpression: aws.String(cond), ExpressionAttributeValues: values}
	for name, send := range map[string]func(*ddb.Table) ddb.Result{
		"UpdateItem": func(s *ddb.Table) ddb.Result { return s.Update(t.Context(), update, ddb.Options{}) },
		"DeleteItem": func(s *ddb.Table) ddb.Result { return s.Delete(t.Context(), remove, ddb.Options{}) },
		"TransactWriteItems": func(s *ddb.Table) ddb.Result {
			client, _ := s.Client.(ddb.Transactor)
			return s.Transact(t.Context(), client, ddb.Options{}, ddb.UpdateOf(update))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				s, _ := b.sender(t, always(fault.None))
				client, _ := s.Client.(*dynamodb.Client)
				var bodies []string
				s.Client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
					o.HTTPClient = fault.New(o.HTTPClient, fault.Config{Script: func(_ string, n int, body []byte) fault.Kind {
						bodies = append(bodies, string(body))
						return []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.None}[n]
					}})
				})
				if res := send(s); res.Outcome != ddb.Applied || res.Clean {
					t.Fatalf("outcome %v: %v", res.Outcome, res.Err)
				}
				if len(bodies) != 3 || bodies[0] != bodies[1] || bodies[1] != bodies[2] || len(bodies[0]) == 0 {
					t.Fatalf("the attempts were %q", bodies)
				}
			}
		})
	}
}

// That a transaction's token was used with other bytes says that an earlier
// request of the call was there: nothing is called refused.
func TestAUsedTokenIsNoRefusal(t *testing.T) {
	b := newBench(t)
	for _, code := range []string{"IdempotentParameterMismatchException", "TransactionInProgressException"} {
		s, in := b.sender(t, always(fault.None))
		client, _ := s.Client.(*dynamodb.Client)
		s.Client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
			// A copy that the network made came first, and was applied.
			o.HTTPClient = &altering{inner: in, nth: -1, alter: func(resp *http.Response, _ []byte) []byte {
				resp.StatusCode = http.StatusBadRequest
				body := []byte(`{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"injected"}`)
				resp.Header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
				return body
			}}
		})
		transactor, _ := s.Client.(ddb.Transactor)
		res := s.Transact(t.Context(), transactor, ddb.Options{}, ddb.UpdateOf(b.add(code)))
		if res.Outcome != ddb.Unknown || res.Clean || b.applied(t, code) != "1" {
			t.Errorf("%s: outcome %v, clean %v, applied %q: %v", code, res.Outcome, res.Clean, b.applied(t, code), res.Err)
		}
		want := 1 // repeating it tells nothing more
		if code == "TransactionInProgressException" {
			want = 3
		}
		if in.Requests() != want {
			t.Errorf("%s: %d requests", code, in.Requests())
		}
	}
}
