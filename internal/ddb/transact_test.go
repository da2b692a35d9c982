package ddb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
)

// both adds to one item, under the condition that another is not there.
func both(t *testing.T, b *bench, s *ddb.Table, change, absent string) []types.TransactWriteItem {
	t.Helper()
	s.Partition = "id"
	var w ddb.Write
	w.Begin(s)
	w.IfAbsent("id")
	check, err := w.Check(ddb.Item{"id": ddb.Text(absent)})
	if err != nil {
		t.Fatal(err)
	}
	return []types.TransactWriteItem{ddb.UpdateOf(b.add(change)), check}
}

// A transaction that was delivered is not applied again, whatever became of its
// answer: its token, and its bytes, are the same in all attempts.
func TestTransactFaults(t *testing.T) {
	b := newBench(t)
	for kind, want := range map[fault.Kind]struct {
		clean    bool
		requests int
	}{
		fault.None:                {true, 1},
		fault.DropRequest:         {false, 2},
		fault.LoseResponse:        {false, 2},
		fault.CutResponse:         {false, 2},
		fault.Truncate:            {false, 2},
		fault.Empty:               {false, 2},
		fault.EmptyAfter:          {false, 2},
		fault.Error500:            {false, 2},
		fault.Error500After:       {false, 2},
		fault.Throttle:            {true, 2},
		fault.TransactionConflict: {true, 2},
		fault.Refuse:              {true, 2},
		fault.Resend:              {true, 1},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			bodies := &bodies{}
			s, in := b.sender(t, first(kind), bodies.watch)
			client, _ := s.Client.(*dynamodb.Client)
			id := "both " + kind.String()
			res := s.Transact(t.Context(), client, ddb.Options{}, both(t, b, s, id, id+" none")...)
			in.Wait()
			if res.Outcome != ddb.Applied || res.Clean != want.clean || in.Requests() != want.requests || b.applied(t, id) != "1" {
				t.Errorf("outcome %v, clean %v, %d requests, applied %q: %v", res.Outcome, res.Clean, in.Requests(), b.applied(t, id), res.Err)
			}
			bodies.same(t)
		})
	}
}

// bodies are those of all requests.
type bodies struct {
	mu  sync.Mutex
	all [][]byte // guarded by mu
}

// watch is an option of a client.
func (b *bodies) watch(o *dynamodb.Options) { o.HTTPClient = &watched{o.HTTPClient, b} }

type watched struct {
	next dynamodb.HTTPClient
	b    *bodies
}

func (w *watched) Do(req *http.Request) (*http.Response, error) {
	var body bytes.Buffer
	if _, err := body.ReadFrom(req.Body); err != nil {
		return nil, err
	}
	w.b.mu.Lock()
	w.b.all = append(w.b.all, body.Bytes())
	w.b.mu.Unlock()
	copied := req.Clone(req.Context())
	copied.Body = readCloser{bytes.NewReader(body.Bytes())}
	return w.next.Do(copied)
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

func (b *bodies) same(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, body := range b.all {
		if !bytes.Equal(body, b.all[0]) {
			t.Errorf("two attempts differ:\n%s\n%s", b.all[0], body)
		}
	}
}

// A check that fails names its item, and nothing is written.
func TestTransactCheck(t *testing.T) {
	b := newBench(t)
	s, _ := b.sender(t, always(fault.None))
	client, _ := s.Client.(*dynamodb.Client)
	if res := s.Update(t.Context(), b.add("there"), ddb.Options{}); res.Outcome != ddb.Applied {
		t.Fatal(res.Err)
	}
	res := s.Transact(t.Context(), client, ddb.Options{}, both(t, b, s, "other", "there")...)
	if res.Outcome != ddb.Condition || len(res.Images) != 2 || res.Images[0].Failed || !res.Images[1].Failed || !ddb.Equal(res.Images[1].Item["n"], ddb.Number("1")) {
		t.Errorf("outcome %v, images %v", res.Outcome, res.Images)
	}
	if n := b.applied(t, "other"); n != "" {
		t.Errorf("the other item has n = %s", n)
	}
}

// A conflict with another transaction is told at once to who asks for it, and as
// such.
func TestTransactConflict(t *testing.T) {
	b := newBench(t)
	s, in := b.sender(t, always(fault.TransactionConflict))
	client, _ := s.Client.(*dynamodb.Client)
	res := s.Transact(t.Context(), client, ddb.Options{Conflicts: true}, both(t, b, s, "x", "y")...)
	if res.Outcome != ddb.Refused || !res.Clean || !ddb.Conflicted(res.Err) || in.Requests() != 1 {
		t.Errorf("outcome %v after %d requests: %v", res.Outcome, in.Requests(), res.Err)
	}
}

// What one call of a sending has met the next one knows, also if it sends nothing any more: of
// a copy that came first a conflict says nothing.
func TestASendingRemembersAConflict(t *testing.T) {
	b := newBench(t)
	s, in := b.sender(t, always(fault.TransactionConflict))
	client, _ := s.Client.(*dynamodb.Client)
	opt := ddb.Options{Conflicts: true, Sending: ddb.NewSending("", 0)}
	s.Transact(t.Context(), client, opt, both(t, b, s, "x", "y")...)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	res := s.Transact(over, client, opt, both(t, b, s, "x", "y")...)
	if res.Outcome != ddb.Refused || !res.Clean || !res.Unjudged || in.Requests() != 1 {
		t.Errorf("outcome %v, unjudged %v, after %d requests: %v", res.Outcome, res.Unjudged, in.Requests(), res.Err)
	}
}

func TestTransactGet(t *testing.T) {
	b := newBench(t)
	plain, _ := b.sender(t, always(fault.None))
	if res := plain.Update(t.Context(), b.add("there"), ddb.Options{}); res.Outcome != ddb.Applied {
		t.Fatal(res.Err)
	}
	for _, kind := range []fault.Kind{fault.None, fault.LoseResponse, fault.TransactionConflict, fault.Truncate, fault.Throttle, fault.Empty, fault.Blank} {
		s, _ := b.sender(t, first(kind))
		client, _ := s.Client.(*dynamodb.Client)
		items, res := s.TransactGet(t.Context(), client, ddb.Options{}, s.GetOf(ddb.Item{"id": ddb.Text("none")}), s.GetOf(ddb.Item{"id": ddb.Text("there")}))
		if res.Err != nil || len(items) != 2 || len(items[0]) != 0 || !ddb.Equal(items[1]["n"], ddb.Number("1")) {
			t.Errorf("%v: %v: %v", kind, items, res.Err)
		}
	}
}

// What cancels a transaction is told apart, item by item.
func TestReasons(t *testing.T) {
	cancelled := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{
		{Code: aws.String("None")}, {Code: aws.String("ConditionalCheckFailed")}, {},
		{Code: aws.String("TransactionConflict")}, {Code: aws.String("ThrottlingError")}, {Code: aws.String("ProvisionedThroughputExceeded")},
		{Code: aws.String("ValidationError"), Message: aws.String("Item size has exceeded the maximum allowed size")}, {Code: aws.String("ItemCollectionSizeLimitExceeded")},
	}}
	var codes []string
	for _, reason := range ddb.Reasons(fmt.Errorf("wrapped: %w", cancelled)) {
		code := ""
		var api smithy.APIError
		if errors.As(reason, &api) {
			code = api.ErrorCode()
		}
		codes = append(codes, code)
	}
	want := []string{"", "", "", "TransactionConflictException", "ThrottlingException", "ProvisionedThroughputExceededException", "ValidationException", "ItemCollectionSizeLimitExceededException"}
	if fmt.Sprint(codes) != fmt.Sprint(want) {
		t.Errorf("%q", codes)
	}
	if ddb.Reasons(context.Canceled) != nil {
		t.Error("another error has reasons")
	}
}
