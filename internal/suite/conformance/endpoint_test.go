package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// TestWrongClients: the error is typed, says what to check, and names the
// endpoint that was asked.
func TestWrongClients(t *testing.T) {
	t.Parallel()
	w := fixture.New(t)
	denied := errors.New("no session")
	once := func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) { so.MaxAttempts = 1 })
	}
	for name, c := range map[string]struct {
		client *dynamodb.Client
		is     error
		says   string
	}{
		"no credentials": {rig.Client(func(o *dynamodb.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, denied })
		}), repo.ErrDenied, "nothing was sent"},
		"no region":       {rig.Client(func(o *dynamodb.Options) { o.Region, o.BaseEndpoint = "", nil }), repo.ErrConfig, "region"},
		"nobody answers":  {rig.Client(once, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://127.0.0.1:1") }), nil, "127.0.0.1:1"},
		"not a DynamoDB":  {rig.Client(once, answering(404, `<html>not here</html>`)), nil, "127.0.0.1"},
		"wrong signature": {rig.Client(once, answering(400, `{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"no"}`)), repo.ErrDenied, "127.0.0.1"},
		"no permission":   {rig.Client(once, answering(400, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"no"}`)), repo.ErrDenied, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			table := w.Items(t, c.client)
			_, err := table.Get(t.Context(), repo.Key{Partition: "p", Sort: 1})
			_, err2 := fixture.Strategies()[2].Open(t, w, c.client).Update(t.Context(), repo.Key{Partition: "p", Sort: 1}, func(context.Context, *fixture.Account) error { return nil })
			var err3 error
			for _, err3 = range table.Query(t.Context(), "p") {
				break
			}
			for call, err := range map[string]error{"Get": err, "Update": err2, "Query": err3, "EnsureTable": table.EnsureTable(t.Context())} {
				if err == nil || (c.is != nil && !errors.Is(err, c.is)) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v; want %v and a text with %q", call, err, c.is, c.says)
				}
			}
		})
	}
}

// answering replaces every reply.
func answering(status int, body string) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) { o.HTTPClient = canned{status, body} }
}

// canned answers every request in the same way.
type canned struct {
	status int
	body   string
}

func (c canned) Do(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: http.Header{},
		ContentLength: int64(len(c.body)), Body: io.NopCloser(bytes.NewReader([]byte(c.body)))}, nil
}

// TestEndpointsWithoutImages: several compatible servers do not return the item
// that failed a condition. What is there is then not called missing, and the
// error names the endpoint's fault.
func TestEndpointsWithoutImages(t *testing.T) {
	t.Parallel()
	key := repo.Key{Partition: "p", Sort: 1}
	ctx := t.Context()
	for name, call := range map[string]func(*testing.T, *repo.Table[fixture.Account]) error{
		"Create": func(t *testing.T, items *repo.Table[fixture.Account]) error {
			_, err := rig.Must(optimistic.New(items, optimistic.Config{}))(t).Create(ctx, fixture.Account{ID: "p", Seq: 1, At: 1})
			return err
		},
		"an older event": func(t *testing.T, items *repo.Table[fixture.Account]) error {
			return rig.Must(nolock.New(items, nolock.Config{}))(t).Put(ctx, fixture.Account{ID: "p", Seq: 1, At: 1})
		},
		"Save of an older version": func(t *testing.T, items *repo.Table[fixture.Account]) error {
			_, err := rig.Must(optimistic.New(items, optimistic.Config{}))(t).Save(ctx, fixture.Account{ID: "p", Seq: 1, At: 5, Version: 77})
			return err
		},
		"TryAcquire": func(t *testing.T, items *repo.Table[fixture.Account]) error {
			_, err := rig.Must(lockedread.New(items, lockedread.Config{}))(t).TryAcquire(ctx, key)
			return err
		},
		"Acquire": func(t *testing.T, items *repo.Table[fixture.Account]) error {
			_, err := rig.Must(lockedread.New(items, lockedread.Config{Race: true}))(t).Acquire(ctx, key)
			return err
		},
		"AcquireOrCreate": func(t *testing.T, items *repo.Table[fixture.Account]) error {
			_, err := rig.Must(lockedread.New(items, lockedread.Config{Race: true}))(t).AcquireOrCreate(ctx, key)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := fixture.New(t)
			rig.Must(rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t).Create(ctx, fixture.Account{ID: "p", Seq: 1, At: 10}))(t)
			rig.Must(w.Locker(t, w.Client, lockedread.Config{}).Acquire(ctx, key))(t)
			blind := w.Items(t, rig.Client(rig.Broken(func(string, int, []byte) fault.Kind { return fault.NoImage })))
			var err error
			for range 3 { // the first calls may have a true answer of a read
				if err = call(t, blind); err == nil || errors.Is(err, repo.ErrNotFound) {
					t.Fatalf("error %v", err)
				}
			}
			rig.Is(t, err, repo.ErrSchema)
			if !strings.Contains(err.Error(), "endpoint") {
				t.Errorf("error %v", err)
			}
		})
	}
}
