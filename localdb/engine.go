package localdb

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// An Engine is a DynamoDB-compatible server and the way to reach it. Its
// methods may be called by many goroutines.
type Engine struct {
	endpoint  string
	process   *process // nil where the endpoint was given
	transport *http.Transport
	awsConfig aws.Config
	options   []func(*dynamodb.Options)
	client    *dynamodb.Client
	closing   sync.Once
}

// Start finds or starts an engine; the package documentation gives the order.
// The context governs starting only, including a first fetch, which takes
// seconds; the engine lives until [Engine.Close].
//
// A started engine answers when Start returns. A given endpoint is not
// contacted.
func Start(ctx context.Context, cfg Config) (*Engine, error) {
	endpoint, local, err := cfg.Given()
	if err != nil {
		return nil, err
	}
	if endpoint != "" {
		return connect(ctx, endpoint, local, cfg)
	}
	engine, err := find(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p, err := launch(ctx, engine, cfg.Path, cfg.logger())
	if err != nil {
		return nil, err
	}
	return newEngine(p.endpoint, p, aws.Config{
		Region:      placeholderRegion,
		Credentials: placeholderCredentials(),
	}, cfg), nil
}

// connect makes an engine of a server that somebody else runs.
func connect(ctx context.Context, endpoint string, local bool, cfg Config) (*Engine, error) {
	var load []func(*config.LoadOptions) error
	if local {
		// Whoever talks to a local server needs no role of a virtual
		// machine, and outside of one the search for it takes seconds.
		load = append(load, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	awsConfig, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("localdb: configuration for %s: %w", endpoint, err)
	}
	if local {
		if awsConfig.Region == "" {
			awsConfig.Region = placeholderRegion
		}
		if awsConfig.Credentials == nil {
			awsConfig.Credentials = placeholderCredentials()
		} else if _, err := awsConfig.Credentials.Retrieve(ctx); err != nil {
			awsConfig.Credentials = placeholderCredentials()
		}
	}
	cfg.logger().InfoContext(ctx, "using the given endpoint", "endpoint", endpoint)
	return newEngine(endpoint, nil, awsConfig, cfg), nil
}

func newEngine(endpoint string, p *process, awsConfig aws.Config, cfg Config) *Engine {
	e := &Engine{
		endpoint:  endpoint,
		process:   p,
		transport: transportOf(awsConfig),
		awsConfig: awsConfig,
		options:   cfg.Options,
	}
	e.awsConfig.HTTPClient = &http.Client{
		Transport: e.transport,
		// DynamoDB never redirects; following one would repeat a write.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	e.client = e.NewClient()
	return e
}

// Client returns the engine's client. It is the same at every call.
func (e *Engine) Client() *dynamodb.Client { return e.client }

// NewClient returns another client of the same engine, with options of its
// own on top of the engine's: another HTTP client, another retry policy.
func (e *Engine) NewClient(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	all := make([]func(*dynamodb.Options), 0, 1+len(e.options)+len(optFns))
	// As an option, since the SDK lets the environment overrule
	// aws.Config.BaseEndpoint.
	all = append(all, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(e.endpoint) })
	all = append(all, e.options...)
	all = append(all, optFns...)
	return dynamodb.NewFromConfig(e.awsConfig, all...)
}

// Endpoint returns the URL of the engine.
func (e *Engine) Endpoint() string { return e.endpoint }

// Managed tells whether Start started the engine. It is false where the
// endpoint was given: such a server, and its tables, outlive Close.
func (e *Engine) Managed() bool { return e.process != nil }

// Close ends an engine that was started here, waits until it is gone, and
// closes the idle connections of [Engine.Client]. Requests under way fail.
// Data in memory is lost. An error says that the engine had ended by itself, and
// with which words. Later calls do nothing and return nil.
func (e *Engine) Close() (err error) {
	e.closing.Do(func() {
		if e.process != nil {
			err = e.process.died()
			e.process.stop()
		}
		e.transport.CloseIdleConnections()
	})
	return err
}

// Servers ask for a region and credentials even where they check none.
const placeholderRegion = "us-east-1"

func placeholderCredentials() aws.CredentialsProvider {
	return aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("local", "local", ""))
}

// transportOf returns a transport of the engine's own, so that Close can shut
// its connections. It starts from the configured one, which may carry the
// certificates named by AWS_CA_BUNDLE.
func transportOf(awsConfig aws.Config) *http.Transport {
	client, ok := awsConfig.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		client = awshttp.NewBuildableClient()
	}
	t := client.GetTransport()
	// Below the 30 s after which servers hang up, so that no request is sent
	// on a connection that is just being closed.
	t.IdleConnTimeout = 20 * time.Second
	// A test with 256 goroutines keeps its connections between requests,
	// instead of using up the machine's ports.
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 256
	return t
}
