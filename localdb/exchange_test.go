//go:build unix

package localdb

import (
	"archive/tar"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Folders above the cache that another user may write to are exchanged while npm runs: what
// that user has put there is neither noted nor run, also where no sum is pinned.
func TestFoldersThatAreExchangedWhileNPMRuns(t *testing.T) {
	r := releases["linux/arm64"]
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(parent, "cache")
	path := os.Getenv("PATH")
	fakeNPM(t, tarballOf(t, "package/dynoxide", tar.TypeReg, []byte("engine")))
	theirs := filepath.Join(t.TempDir(), "tarball")
	writeFile(t, theirs, tarballOf(t, "package/dynoxide", tar.TypeReg, []byte("theirs")), 0o600)
	npm := filepath.Join(os.Getenv("PATH"), "npm")
	script := "#!/bin/sh\n[ \"$1\" = pack ] || exit 0\nPATH='" + path + "'\ncp '" + filepath.Join(filepath.Dir(npm), "tarball") + "' ./dynoxide.tgz\n" +
		"here=$(basename \"$PWD\")\nmv '" + cache + "' '" + cache + ".was'\nmkdir -p '" + r.folder(cache) + "'/\"$here\"\ncp '" + theirs + "' '" + r.folder(cache) + "'/\"$here\"/dynoxide.tgz\n"
	if err := os.WriteFile(npm, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	fetched := r.fetch(t.Context(), cache)
	if _, err := os.Stat(cache + ".was"); err != nil {
		t.Fatal("nothing was exchanged: ", err, fetched)
	}
	if engine, err := r.load(cache); err == nil {
		t.Errorf("%q would be run: %v", engine.path, fetched)
	}
	for _, file := range filesIn(t, parent) {
		if content, _ := os.ReadFile(file); string(content) == "theirs" { //nolint:gosec // of the test's own folder
			t.Errorf("%s has what another user put there", file)
		}
	}

	// Where no folder is safe from that, npm is not run.
	t.Setenv("TMPDIR", parent)
	if err := r.fetch(t.Context(), cache); err == nil || !strings.Contains(err.Error(), "lets other users exchange") {
		t.Errorf("fetched where others can exchange all: %v", err)
	}
}

// The machine's settings name variables, too.
func TestNPMGetsWhatTheMachinesSettingsName(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{0o644: "Bearer for-npm", 0o666: "Bearer ${MIRROR_TOKEN}"} { // of anybody's file: not replaced
		var got string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization")
			w.WriteHeader(http.StatusNotFound)
		}))
		dir, home := t.TempDir(), t.TempDir()
		machine := filepath.Join(dir, "npmrc")
		writeFile(t, machine, []byte("registry="+server.URL+"/\nfetch-retries=0\n"+strings.TrimPrefix(server.URL, "http:")+"/:_authToken=${MIRROR_TOKEN}\n"), mode)
		writeFile(t, filepath.Join(dir, "npm"), []byte("#!/bin/sh\nexport npm_config_globalconfig='"+machine+"'\nexec '"+npm+"' \"$@\"\n"), 0o700)
		if err := os.Chmod(machine, mode); err != nil {
			t.Fatal(err)
		}
		t.Setenv("HOME", home)
		t.Setenv("npm_config_userconfig", filepath.Join(home, ".npmrc"))
		t.Setenv("npm_config_cache", filepath.Join(home, "npm"))
		t.Setenv("MIRROR_TOKEN", "for-npm")
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		if err := pinned.fetch(t.Context(), filepath.Join(t.TempDir(), "cache")); err == nil {
			t.Error("there is nothing to be had")
		}
		server.Close()
		if got != want {
			t.Errorf("mode %v: the mirror was given %q, want %q", mode, got, want)
		}
	}
}
