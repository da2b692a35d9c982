package localdb

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Config says where the engine comes from. The zero value is valid: whatever
// the environment names, else an embedded engine in memory.
type Config struct {
	// Endpoint is the URL of a running server, for example
	// "http://127.0.0.1:8000". It takes precedence over the environment.
	// With an endpoint nothing is started.
	Endpoint string

	// Path is the file in which a started engine keeps its data. Empty means
	// in memory. Unused when the endpoint is given, here or by the
	// environment. Two engines must not share a file: on Unix the second is refused. It is made
	// its user's alone (mode 0600), and so are the files that are kept beside it. A file or folder
	// of another user is refused, and a folder that everybody may write to, such as /tmp.
	Path string

	// CacheDir is the folder for fetched engines. The default is "dynahold"
	// in [os.UserCacheDir]. One that others own or may write to, or that is a link, is refused.
	CacheDir string

	// Options are applied to every client of the engine, after its own.
	Options []func(*dynamodb.Options)

	// Logger receives what was chosen and, at debug level, the lines that
	// the engine prints. Nil logs nothing.
	Logger *slog.Logger
}

// The variables by which every AWS tool is told its endpoint.
const (
	envServiceEndpoint = "AWS_ENDPOINT_URL_DYNAMODB"
	envEndpoint        = "AWS_ENDPOINT_URL"
	envIgnoreEndpoints = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
)

// Given returns the URL of the server that the configuration or the environment
// names, and whether it is on this machine by name: localhost or a loopback
// address. The URL is empty where [Start] starts an engine. Nothing is contacted.
func (c Config) Given() (endpoint string, local bool, err error) {
	given, source := c.Endpoint, "Config.Endpoint"
	if given == "" && !strings.EqualFold(os.Getenv(envIgnoreEndpoints), "true") {
		given, source = os.Getenv(envServiceEndpoint), envServiceEndpoint
		if given == "" {
			given, source = os.Getenv(envEndpoint), envEndpoint
		}
	}
	if given == "" {
		return "", false, nil
	}
	u, err := url.Parse(given)
	if err != nil {
		return "", false, fmt.Errorf("localdb: %s is no URL: %w", source, err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return "", false, fmt.Errorf("localdb: %s must look like http://host:port, got %q", source, given)
	}
	return given, loopback(u.Hostname()), nil
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func (c Config) cacheDir() (string, error) {
	if c.CacheDir != "" {
		return filepath.Abs(c.CacheDir)
	}
	// The system's folder for temporary files is no substitute: on a shared
	// machine others could place a file there under the name we look for.
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Join(errors.New("no cache folder, set Config.CacheDir"), err)
	}
	return filepath.Join(dir, "dynahold"), nil
}

func (c Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}
