package dynahold_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// TestWrongClients: the error is typed, says what to check, and names the
// endpoint that was asked.
func TestWrongClients(t *testing.T) {
	w := newWorld(t)
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
			table := w.repoTable(t, c.client)
			_, err := table.Get(t.Context(), repo.Key{Partition: "p", Sort: 1})
			_, err2 := strategies()[2].open(t, w, c.client).Update(t.Context(), repo.Key{Partition: "p", Sort: 1}, func(context.Context, *Account) error { return nil })
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
