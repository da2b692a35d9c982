package localdb_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/localdb"
)

// An owner is a process of its own that holds an engine, see own.
type owner struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr strings.Builder
}

func newOwner(t *testing.T, cache string) *owner {
	t.Helper()
	o := &owner{cmd: exec.CommandContext(t.Context(), os.Args[0])}
	o.cmd.Env = append(os.Environ(), ownerCache+"="+cache)
	o.cmd.Stderr = &o.stderr
	stdin, err := o.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.stdin, o.stdout = stdin, bufio.NewReader(stdout)
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return o
}

// begin lets the owner start its engine.
func (o *owner) begin(t *testing.T) {
	t.Helper()
	if _, err := o.stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
}

// endpoint waits for the owner's engine.
func (o *owner) endpoint(t *testing.T) string {
	t.Helper()
	line, err := o.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("owner got no engine: %v; %v: %s", err, o.cmd.Wait(), o.stderr.String())
	}
	return strings.TrimSpace(line)
}

// waitRefused polls, since a port has no event for nobody listening any more.
func waitRefused(t *testing.T, endpoint string) {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("tcp", u.Host)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			_ = conn.Close()
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s still answers (last error: %v)", endpoint, err)
		}
	}
}

func TestEngineDiesWithAKilledOwner(t *testing.T) {
	withoutEndpoint(t)
	// Fetched here, so that the owners below use this process's cache.
	start(t, localdb.Config{})
	userCache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		o := newOwner(t, filepath.Join(userCache, "dynahold"))
		o.begin(t)
		endpoint := o.endpoint(t)
		if err := o.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := o.cmd.Wait(); err == nil {
			t.Fatal("the owner ended well in spite of SIGKILL")
		}
		waitRefused(t, endpoint)
	}
}

func TestManyProcessesShareAnEmptyCache(t *testing.T) {
	withoutEndpoint(t)
	if _, err := exec.LookPath("dynoxide"); err == nil {
		t.Log("dynoxide is on the PATH: the cache stays unused")
	}
	cache := filepath.Join(t.TempDir(), "cache")
	var owners []*owner
	for range rig.Share(2, 4) {
		owners = append(owners, newOwner(t, cache))
	}
	for _, o := range owners {
		o.begin(t)
	}
	seen := map[string]bool{}
	for _, o := range owners {
		endpoint := o.endpoint(t)
		if seen[endpoint] {
			t.Errorf("two owners got %s", endpoint)
		}
		seen[endpoint] = true
	}
	for _, o := range owners {
		if err := o.stdin.Close(); err != nil {
			t.Error(err)
		}
		if err := o.cmd.Wait(); err != nil {
			t.Errorf("owner: %v: %s", err, o.stderr.String())
		}
	}
	// No rubbish left behind by those who came second.
	rubbish, err := filepath.Glob(filepath.Join(cache, "*", ".fetch-*"))
	if err != nil || len(rubbish) > 0 {
		t.Errorf("left in the cache: %v, %v", rubbish, err)
	}
}
