package direct_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

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
