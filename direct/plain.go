package direct

import (
	"reflect"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// doubts says of each option of a client when it may ask for something that happens in
// the SDK's middleware. nil: never, because the example shows what comes of it, or it
// takes effect elsewhere. A test sees to it that no option is left out.
var doubts = map[string]func(given, usual *dynamodb.Options) bool{
	"APIOptions":   func(o, _ *dynamodb.Options) bool { return len(o.APIOptions) > 0 },
	"Interceptors": func(o, _ *dynamodb.Options) bool { return anyInterceptor(o) },
	// What is told to somebody at every step.
	"ClientLogMode":  func(o, _ *dynamodb.Options) bool { return o.ClientLogMode != 0 },
	"MeterProvider":  func(o, usual *dynamodb.Options) bool { return differ(o.MeterProvider, usual.MeterProvider) },
	"TracerProvider": func(o, usual *dynamodb.Options) bool { return differ(o.TracerProvider, usual.TracerProvider) },
	"Logger":         nil, // with no mode it hears warnings only, of answers that go the SDK's way
	// Where the request goes.
	"EndpointResolver":   func(o, _ *dynamodb.Options) bool { return o.EndpointResolver != nil }, //nolint:staticcheck // who sets it gets what it does
	"EndpointResolverV2": func(o, usual *dynamodb.Options) bool { return differ(o.EndpointResolverV2, usual.EndpointResolverV2) },
	"EndpointDiscovery": func(o, _ *dynamodb.Options) bool {
		return o.EndpointDiscovery.EnableEndpointDiscovery == aws.EndpointDiscoveryEnabled
	},
	"AccountIDEndpointMode": nil, // an example is for one account
	"BaseEndpoint":          nil,
	"EndpointOptions":       nil,
	"Region":                nil,
	// Who signs it, and how.
	"Credentials":        func(o, _ *dynamodb.Options) bool { return o.Credentials == nil },
	"HTTPSignerV4":       func(o, usual *dynamodb.Options) bool { return differ(o.HTTPSignerV4, usual.HTTPSignerV4) },
	"AuthSchemeResolver": func(o, usual *dynamodb.Options) bool { return differ(o.AuthSchemeResolver, usual.AuthSchemeResolver) },
	"AuthSchemes": func(o, usual *dynamodb.Options) bool {
		return len(o.AuthSchemes) != 1 || differ(o.AuthSchemes[0], usual.AuthSchemes[0])
	},
	"AuthSchemePreference": func(o, _ *dynamodb.Options) bool { return len(o.AuthSchemePreference) > 0 },
	// Without correction the SDK signs by our clock, as is done here.
	"DisableClockSkewCorrection": nil,
	// How it is written, sent and read.
	"Protocol":                 func(o, usual *dynamodb.Options) bool { return differ(o.Protocol, usual.Protocol) },
	"EnableAcceptEncodingGzip": func(o, _ *dynamodb.Options) bool { return o.EnableAcceptEncodingGzip },
	"HTTPClient":               func(o, _ *dynamodb.Options) bool { return o.HTTPClient == nil },
	"AppID":                    nil,
	// The caller, who repeats, asks the retryer, and compares checksums.
	"DisableValidateResponseChecksum": nil,
	"Retryer":                         func(o, _ *dynamodb.Options) bool { return o.Retryer == nil },
	"RetryMaxAttempts":                nil,
	"RetryMode":                       nil,
	// Serves other operations only.
	"IdempotencyTokenProvider": nil,
	// Have had their effect when the client was made.
	"DefaultsMode":         nil,
	"RuntimeEnvironment":   nil,
	"resolvedDefaultsMode": nil,
}

// usual are the options of a client that was asked for nothing.
var usual = sync.OnceValue(func() *dynamodb.Options {
	o := dynamodb.New(dynamodb.Options{Credentials: aws.CredentialsProviderFunc(nil)}).Options()
	return &o
})

// doubtful names an option that leaves a doubt; "": none does.
func doubtful(o *dynamodb.Options) string {
	for name, doubt := range doubts {
		if doubt != nil && doubt(o, usual()) {
			return name
		}
	}
	return ""
}

// differ reports whether something is of another type than the SDK's own.
func differ(given, usual any) bool { return reflect.TypeOf(given) != reflect.TypeOf(usual) }

func anyInterceptor(o *dynamodb.Options) bool {
	registry := reflect.ValueOf(o.Interceptors)
	for i := range registry.NumField() {
		if registry.Field(i).Len() > 0 {
			return true
		}
	}
	return false
}
