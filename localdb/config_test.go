package localdb_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/localdb"
)

// withoutAccount hides credentials and settings of whoever runs the tests.
func withoutAccount(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
	} {
		t.Setenv(name, "")
	}
	absent := filepath.Join(t.TempDir(), "absent")
	t.Setenv("AWS_CONFIG_FILE", absent)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", absent)
}

func TestGivenEndpointStartsNothing(t *testing.T) {
	withoutEndpoint(t)
	withoutAccount(t)
	server := start(t, localdb.Config{})
	if err := createTable(t.Context(), server.Client(), "theirs"); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		service, general, ignore string
		cfg                      localdb.Config
	}{
		"service variable":      {service: server.Endpoint()},
		"general variable":      {general: server.Endpoint()},
		"service before all":    {service: server.Endpoint(), general: "http://127.0.0.1:1"},
		"Config before service": {service: "http://127.0.0.1:1", cfg: localdb.Config{Endpoint: server.Endpoint()}},
		"Config when ignored":   {ignore: "true", cfg: localdb.Config{Endpoint: server.Endpoint()}},
	}
	// Nothing to start with: no program on the PATH, nothing in the cache.
	t.Setenv("PATH", "")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", c.service)
			t.Setenv("AWS_ENDPOINT_URL", c.general)
			t.Setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", c.ignore)
			c.cfg.CacheDir = filepath.Join(t.TempDir(), "cache")
			e := start(t, c.cfg)
			if e.Managed() {
				t.Error("a given endpoint is not managed")
			}
			if got := tables(t, e.Client()); got != "theirs" {
				t.Errorf("tables: %q", got)
			}
			if _, err := os.Stat(c.cfg.CacheDir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the cache folder was touched: %v", err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			// Close left the server alone.
			if got := tables(t, server.Client()); got != "theirs" {
				t.Errorf("tables after Close: %q", got)
			}
		})
	}
}

func TestEndpointMustBeAURL(t *testing.T) {
	withoutEndpoint(t)
	for _, endpoint := range []string{"localhost:8000", "127.0.0.1", "ftp://localhost", "http://", "http://[::1"} {
		if _, err := localdb.Start(t.Context(), localdb.Config{Endpoint: endpoint}); err == nil {
			t.Errorf("%q was accepted", endpoint)
		} else if !strings.Contains(err.Error(), "Config.Endpoint") {
			t.Errorf("%q: %v does not say where it came from", endpoint, err)
		}
	}
}

func TestGiven(t *testing.T) {
	for _, c := range []struct {
		service, general, ignore string
		endpoint                 string
		local                    bool
	}{
		{"", "", "", "", false},
		{"http://127.0.0.1:1", "http://a.example", "", "http://127.0.0.1:1", true},
		{"", "http://LOCALHOST:1", "", "http://LOCALHOST:1", true},
		{"", "http://[::1]:1", "false", "http://[::1]:1", true},
		{"https://dynamodb.us-east-1.amazonaws.com", "", "", "https://dynamodb.us-east-1.amazonaws.com", false},
		{"http://10.0.0.1:1", "", "True", "", false},
	} {
		t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", c.service)
		t.Setenv("AWS_ENDPOINT_URL", c.general)
		t.Setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", c.ignore)
		if endpoint, local, err := (localdb.Config{}).Given(); err != nil || endpoint != c.endpoint || local != c.local {
			t.Errorf("%+v: %q, %v, %v", c, endpoint, local, err)
		}
	}
}
