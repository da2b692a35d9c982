package direct

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyauth "github.com/aws/smithy-go/auth"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/metrics"
	"github.com/aws/smithy-go/middleware"
	"github.com/aws/smithy-go/tracing"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// What an own one of each kind looks like.
type (
	ownSigner   struct{ *v4.Signer }
	ownEndpoint struct{ dynamodb.EndpointResolverV2 }
	ownMeter    struct{ metrics.NopMeterProvider }
	ownTracer   struct{ tracing.NopTracerProvider }
	ownProtocol struct{ smithyhttp.ClientProtocol }
	ownScheme   struct{ smithyhttp.AuthScheme }
	ownSchemes  struct{}
	hook        struct{}
)

func (ownSchemes) ResolveAuthSchemes(context.Context, *dynamodb.AuthResolverParameters) ([]*smithyauth.Option, error) {
	return []*smithyauth.Option{{SchemeID: smithyauth.SchemeIDSigV4}}, nil
}

func (hook) BeforeExecution(context.Context, *smithyhttp.InterceptorContext) error { return nil }

// options are changes of every field of a client's options, each with what is done
// about it: true, there is a path for such a client.
var options = map[string][]struct {
	set  func(*dynamodb.Options)
	path bool
}{
	"APIOptions": {{func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(*middleware.Stack) error { return nil })
	}, false}},
	"AccountIDEndpointMode":           {{func(o *dynamodb.Options) { o.AccountIDEndpointMode = aws.AccountIDEndpointModeRequired }, true}},
	"AppID":                           {{func(o *dynamodb.Options) { o.AppID = "app" }, true}},
	"BaseEndpoint":                    {{func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://127.0.0.1:8000/path") }, true}},
	"ClientLogMode":                   {{func(o *dynamodb.Options) { o.ClientLogMode = aws.LogRetries }, false}, {func(o *dynamodb.Options) { o.ClientLogMode = aws.LogRequest }, false}},
	"Credentials":                     {{func(o *dynamodb.Options) { o.Credentials = nil }, false}, {func(o *dynamodb.Options) { o.Credentials = aws.AnonymousCredentials{} }, false}},
	"DefaultsMode":                    {{func(o *dynamodb.Options) { o.DefaultsMode = aws.DefaultsModeMobile }, true}},
	"DisableClockSkewCorrection":      {{func(o *dynamodb.Options) { o.DisableClockSkewCorrection = true }, true}},
	"DisableValidateResponseChecksum": {{func(o *dynamodb.Options) { o.DisableValidateResponseChecksum = true }, true}},
	"EnableAcceptEncodingGzip":        {{func(o *dynamodb.Options) { o.EnableAcceptEncodingGzip = true }, false}},
	"EndpointDiscovery": {
		{func(o *dynamodb.Options) { o.EndpointDiscovery.EnableEndpointDiscovery = aws.EndpointDiscoveryEnabled }, false},
		{func(o *dynamodb.Options) { o.EndpointDiscovery.EnableEndpointDiscovery = aws.EndpointDiscoveryDisabled }, true},
	},
	"EndpointOptions":          {{func(o *dynamodb.Options) { o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled }, true}, {func(o *dynamodb.Options) { o.EndpointOptions.DisableHTTPS = true }, true}},
	"EndpointResolver":         {{func(o *dynamodb.Options) { o.EndpointResolver = dynamodb.EndpointResolverFromURL("http://127.0.0.1") }, false}}, //nolint:staticcheck // who sets it gets what it does
	"EndpointResolverV2":       {{func(o *dynamodb.Options) { o.EndpointResolverV2 = ownEndpoint{o.EndpointResolverV2} }, false}},
	"HTTPSignerV4":             {{func(o *dynamodb.Options) { o.HTTPSignerV4 = ownSigner{v4.NewSigner()} }, false}, {func(o *dynamodb.Options) { o.HTTPSignerV4 = v4.NewSigner() }, true}},
	"IdempotencyTokenProvider": {{func(o *dynamodb.Options) { o.IdempotencyTokenProvider = nil }, true}},
	"Logger":                   {{func(o *dynamodb.Options) { o.Logger = logging.NewStandardLogger(io.Discard) }, true}},
	"MeterProvider":            {{func(o *dynamodb.Options) { o.MeterProvider = ownMeter{} }, false}},
	"Region":                   {{func(o *dynamodb.Options) { o.Region = "eu-central-1" }, true}},
	"RetryMaxAttempts":         {{func(o *dynamodb.Options) { o.RetryMaxAttempts = 7 }, true}},
	"RetryMode":                {{func(o *dynamodb.Options) { o.RetryMode = aws.RetryModeAdaptive }, true}},
	"Retryer":                  {{func(o *dynamodb.Options) { o.Retryer = retry.NewAdaptiveMode() }, true}, {func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }, true}},
	"RuntimeEnvironment":       {{func(o *dynamodb.Options) { o.RuntimeEnvironment.Region = "eu-west-1" }, true}},
	"TracerProvider":           {{func(o *dynamodb.Options) { o.TracerProvider = &ownTracer{} }, false}},
	"resolvedDefaultsMode":     {{func(*dynamodb.Options) {}, true}}, // is not to be had from outside
	"Protocol":                 {{func(o *dynamodb.Options) { o.Protocol = ownProtocol{o.Protocol} }, false}},
	"HTTPClient":               {{func(o *dynamodb.Options) { o.HTTPClient = &http.Client{} }, true}},
	"Interceptors":             {{func(o *dynamodb.Options) { o.Interceptors.AddBeforeExecution(hook{}) }, false}},
	"AuthSchemeResolver":       {{func(o *dynamodb.Options) { o.AuthSchemeResolver = ownSchemes{} }, false}},
	"AuthSchemes": {
		{func(o *dynamodb.Options) { o.AuthSchemes = []smithyhttp.AuthScheme{ownScheme{usual().AuthSchemes[0]}} }, false},
		{func(o *dynamodb.Options) { o.AuthSchemes = []smithyhttp.AuthScheme{} }, false},
	},
	"AuthSchemePreference": {{func(o *dynamodb.Options) { o.AuthSchemePreference = []string{"sigv4a"} }, false}},
}

// Every option of the SDK's version in go.mod is decided; a new one fails here.
func TestEveryOptionIsDecided(t *testing.T) {
	all := reflect.VisibleFields(reflect.TypeFor[dynamodb.Options]())
	for _, f := range all {
		if _, ok := doubts[f.Name]; !ok || len(options[f.Name]) == 0 {
			t.Errorf("nobody has decided what is done about the option %s", f.Name)
		}
	}
	if len(doubts) != len(all) || len(options) != len(all) {
		t.Errorf("%d doubts and %d tests, %d options", len(doubts), len(options), len(all))
	}
	given := dynamodb.Options{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	for name, changes := range options {
		for i, c := range changes {
			if _, err := Client(dynamodb.New(given, c.set)); (err == nil) != c.path || err != nil && (!errors.Is(err, ErrOption) || !strings.Contains(err.Error(), name)) {
				t.Errorf("%s, change %d: %v, want a client: %v", name, i, err, c.path)
			}
		}
	}
	registry := reflect.TypeFor[smithyhttp.InterceptorRegistry]()
	for i := range registry.NumField() {
		var o dynamodb.Options
		list := reflect.ValueOf(&o.Interceptors).Elem().Field(i)
		list.Set(reflect.MakeSlice(list.Type(), 1, 1))
		if !anyInterceptor(&o) {
			t.Errorf("interceptors %s are not seen", registry.Field(i).Name)
		}
	}
}

// A client as programs make it has a path.
func TestUsualClientsHaveAPath(t *testing.T) {
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion("eu-west-1"),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("a", "b", "")))
	if err != nil {
		t.Fatal(err)
	}
	client := dynamodb.NewFromConfig(cfg)
	if _, err := Client(client); err != nil {
		t.Error(err)
	}
	if _, err := Client(dynamodb.New(client.Options())); err != nil {
		t.Errorf("with the options of another: %v", err)
	}
	if _, err := Client(nil); err == nil {
		t.Error("a client of none")
	}
}

// An example that the client's signer would sign differently is not taken.
func TestExamplesOfOtherSigners(t *testing.T) {
	sender, err := Client(dynamodb.New(dynamodb.Options{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}))
	if err != nil {
		t.Fatal(err)
	}
	p := sender.path
	sent := func() *shown {
		req := &http.Request{Method: http.MethodPost, Body: http.NoBody, URL: &url.URL{Scheme: "https", Host: "h", Path: "/"}, Header: http.Header{"X-Amz-Target": {"x"}}}
		if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, req, sum(nil), "dynamodb", "eu-west-1", time.Now()); err != nil {
			t.Fatal(err)
		}
		return p.show(req)
	}
	resp := &http.Response{Header: http.Header{}}
	for name, change := range map[string]func(*shown){
		"signature": func(s *shown) { s.header.Set(authorization, s.header.Get(authorization)+"0") },
		"header":    func(s *shown) { s.header.Set("X-Amz-Target", "y") },
		"query":     func(s *shown) { s.url.RawQuery = "a=b" },
		"no date":   func(s *shown) { s.header.Del(date) },
	} {
		s := sent()
		change(s)
		s.answer = resp
		if p.learn(t.Context(), getItem, s); p.open(getItem) {
			t.Errorf("%s: taken", name)
		}
	}
	late := &http.Response{Header: http.Header{"Date": {time.Now().Add(-2 * time.Minute).UTC().Format(http.TimeFormat)}}}
	s := sent()
	s.answer = late
	if p.learn(t.Context(), getItem, s); p.open(getItem) {
		t.Error("taken from a service whose clock is far away")
	}
	s = sent()
	s.answer = resp
	if p.learn(t.Context(), getItem, s); !p.open(getItem) {
		t.Error("a good one is not taken")
	}
}
