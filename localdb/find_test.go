package localdb

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// An engine on the PATH was run whatever its version: what the tests then saw
// was another engine's behaviour.
func TestTheEngineOnThePathIsAskedForItsVersion(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Fatal("needs a shell")
	}
	real, err := fetched(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		script string
		used   bool
		note   string
	}{
		"the pinned version": {"echo 'dynoxide " + version + "'", true, ""},
		"an older one":       {"echo 'dynoxide 0.9.3'", false, "0.9.3"},
		"a longer number":    {"echo 'dynoxide " + version + "1'", false, version + "1"},
		"no answer":          {"exit 3", false, "exit status 3"},
		"another program":    {"echo usage", false, "usage"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			script := filepath.Join(dir, "dynoxide")
			writeFile(t, script, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755)
			t.Setenv("PATH", dir)
			var log bytes.Buffer
			found, err := find(t.Context(), Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if want := map[bool]string{true: script, false: real.path}[c.used]; err != nil || found.path != want {
				t.Errorf("found %q, %v; want %q", found.path, err, want)
			}
			if !strings.Contains(log.String(), c.note) || (log.Len() > 0) == c.used {
				t.Errorf("logged %q", log.String())
			}
			if c.used {
				return
			}
			// Without npm there is nothing else: both reasons are told.
			_, err = find(t.Context(), Config{CacheDir: t.TempDir()})
			if err == nil || !strings.Contains(err.Error(), c.note) || !strings.Contains(err.Error(), "no npm") {
				t.Errorf("error %v", err)
			}
		})
	}
}
