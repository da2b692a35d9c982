package localdb

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// pinned is the release whose sums are known. These tests never run it, so
// they hold on every platform.
var pinned = releases["linux/amd64"]

func TestWithoutAnythingTheErrorNamesTheWaysOut(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	t.Setenv("AWS_ENDPOINT_URL", "")
	t.Setenv("PATH", "")
	_, err := Start(t.Context(), Config{CacheDir: t.TempDir()})
	if !errors.Is(err, ErrNoEngine) {
		t.Fatalf("got %v, want ErrNoEngine", err)
	}
	for _, way := range []string{"AWS_ENDPOINT_URL_DYNAMODB", "any DynamoDB-compatible server", "install dynoxide", "install npm"} {
		if !strings.Contains(err.Error(), way) {
			t.Errorf("%q is not named in: %v", way, err)
		}
	}
}

// fakeNPM puts a program named npm on the PATH, as the only one, which
// delivers the given tarball: a registry gone bad.
func fakeNPM(t *testing.T, tarball []byte) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Fatal("needs a shell")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "tarball")
	writeFile(t, file, tarball, 0o600)
	cp, err := exec.LookPath("cp")
	if err != nil {
		t.Fatal(err)
	}
	// npm runs in the folder that it is to fill.
	writeFile(t, filepath.Join(dir, "npm"), []byte("#!/bin/sh\nexec "+cp+" '"+file+"' ./dynoxide.tgz\n"), 0o700)
	t.Setenv("PATH", dir)
}

func writeFile(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}

func tarballOf(t *testing.T, name string, typeflag byte, content []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	archive := tar.NewWriter(zip)
	header := &tar.Header{Name: name, Typeflag: typeflag, Mode: 0o755, Size: int64(len(content)), Linkname: "elsewhere"}
	if err := archive.WriteHeader(header); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestCorruptedTarballIsRefused(t *testing.T) {
	fakeNPM(t, tarballOf(t, "package/dynoxide", tar.TypeReg, []byte("#!/bin/sh\nexit 0\n")))
	cache := t.TempDir()
	if err := pinned.fetch(t.Context(), cache); !errors.Is(err, ErrChecksum) {
		t.Fatalf("got %v, want ErrChecksum", err)
	}
	if left := filesIn(t, cache); len(left) > 0 {
		t.Fatalf("left in the cache: %v", left)
	}
}

// Whatever keeps the engine from being fetched, the error says what to do: the folder that
// cannot be written, the registry that gives something else, the npm that fails.
func TestWhatFailsNamesTheWaysOut(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	t.Setenv("AWS_ENDPOINT_URL", "")
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, nil, 0o600)
	empty := t.TempDir()
	for name, c := range map[string]struct {
		cache   string
		tarball []byte
		says    string
	}{
		"the cache is no folder":    {filepath.Join(file, "cache"), nil, "not a directory"},
		"a tarball of another kind": {empty, []byte("hello"), "tarball of @dynoxide"},
	} {
		t.Run(name, func(t *testing.T) {
			fakeNPM(t, c.tarball)
			_, err := Start(t.Context(), Config{CacheDir: c.cache})
			if !errors.Is(err, ErrNoEngine) {
				t.Fatalf("got %v, want ErrNoEngine", err)
			}
			for _, part := range []string{c.says, "AWS_ENDPOINT_URL_DYNAMODB", "install dynoxide", "Config.CacheDir"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

// A cache that was restored without its modes, as artifacts of CI are, holds an engine that
// cannot be run: it is as good as none.
func TestAnEngineThatCannotBeRunIsFetchedAnew(t *testing.T) {
	fakeNPM(t, tarballOf(t, "package/dynoxide", tar.TypeReg, []byte("engine")))
	r := releases["linux/arm64"]
	cache := t.TempDir()
	if err := r.fetch(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(r.path(cache), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := verify(r, cache); err == nil {
		t.Fatal("it is held to be whole")
	}
	if err := errors.Join(r.fetch(t.Context(), cache), verify(r, cache)); err != nil {
		t.Fatal(err)
	}
}

// The name of a home folder is nobody's pattern.
func TestAnyFolderCanBeTheCache(t *testing.T) {
	fakeNPM(t, tarballOf(t, "package/dynoxide", tar.TypeReg, []byte("engine")))
	r := releases["linux/arm64"]
	cache := filepath.Join(t.TempDir(), "a[b]*?")
	if err := errors.Join(r.fetch(t.Context(), cache), verify(r, cache)); err != nil {
		t.Fatal(err)
	}
}

// What a process that was killed while it fetched has left in the cache goes with the next
// fetch; that of one which still fetches stays.
func TestTheNextFetchClearsUp(t *testing.T) {
	fakeNPM(t, tarballOf(t, "package/dynoxide", tar.TypeReg, []byte("engine")))
	r := releases["linux/arm64"]
	cache := t.TempDir()
	dead, alive := filepath.Join(r.folder(cache), ".fetch-1"), filepath.Join(r.folder(cache), ".fetch-2")
	for _, dir := range []string{dead, alive} {
		writeFile(t, filepath.Join(dir, "half.tgz"), []byte("half"), 0o600)
	}
	yesterday := time.Now().Add(-24 * time.Hour)
	if err := errors.Join(os.Chtimes(dead, yesterday, yesterday), r.fetch(t.Context(), cache)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a dead process left is still there: %v", err)
	}
	if _, err := os.Stat(alive); err != nil {
		t.Errorf("what another process works at is gone: %v", err)
	}
}

// An npm that is a launcher, as tools for many versions of it install one, ends with what it
// has started when the fetch is given up.
func TestNPMEndsWithItsChild(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Fatal("needs a shell")
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	begun := filepath.Join(dir, "begun")
	writeFile(t, filepath.Join(dir, "npm"), []byte("#!/bin/sh\n"+sleep+" 1000 &\necho >'"+begun+"'\nwait\n"), 0o700)
	t.Setenv("PATH", dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("not today")
	ended := make(chan error, 1)
	go func() { ended <- pinned.fetch(ctx, t.TempDir()) }()
	for _, err := os.Stat(begun); err != nil; _, err = os.Stat(begun) {
		time.Sleep(time.Millisecond)
	}
	cancel(mine)
	left := time.Now()
	if err := <-ended; !errors.Is(err, mine) {
		t.Errorf("error %v, want the context's cause", err)
	}
	// The child holds the output open: had it survived, only the delay would have ended the wait.
	if took := time.Since(left); took >= npmDelay {
		t.Errorf("the fetch ended after %v: the child survived", took)
	}
}

// A fetch that fails while another process has brought the engine harms nobody: on some
// systems a file that is being run cannot be replaced.
func TestTheFetchOfAnotherProcessWillDo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Fatal("needs a shell")
	}
	real, err := fetched(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	here, err := currentRelease()
	if err != nil {
		t.Fatal(err)
	}
	cache, dir := t.TempDir(), t.TempDir()
	cp, err := exec.LookPath("cp")
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n" + cp + " -p '" + filepath.Dir(real.path) + "'/* '" + here.folder(cache) + "'\nexit 1\n"
	writeFile(t, filepath.Join(dir, "npm"), []byte(script), 0o700)
	t.Setenv("PATH", dir)
	if engine, err := fetched(t.Context(), Config{CacheDir: cache}); err != nil || engine.path != here.path(cache) {
		t.Errorf("found %q, %v", engine.path, err)
	}
}

// The second line of defence: a tarball that passes, with a binary that does not.
func TestCorruptedBinaryInTarballIsRefused(t *testing.T) {
	fakeNPM(t, tarballOf(t, "package/dynoxide", tar.TypeReg, []byte("#!/bin/sh\nexit 0\n")))
	r := pinned
	r.tarballSum = ""
	cache := t.TempDir()
	if err := r.fetch(t.Context(), cache); !errors.Is(err, ErrChecksum) {
		t.Fatalf("got %v, want ErrChecksum", err)
	}
	if left := filesIn(t, cache); len(left) > 0 {
		t.Fatalf("left in the cache: %v", left)
	}
}

func TestOnlyTheOneFileIsTakenOut(t *testing.T) {
	content := []byte("engine")
	cases := map[string]struct {
		name     string
		typeflag byte
		ok       bool
	}{
		"the file":          {"package/dynoxide", tar.TypeReg, true},
		"another file":      {"package/dynoxide2", tar.TypeReg, false},
		"outside":           {"package/../../dynoxide", tar.TypeReg, false},
		"absolute":          {"/package/dynoxide", tar.TypeReg, false},
		"a symbolic link":   {"package/dynoxide", tar.TypeSymlink, false},
		"a hard link":       {"package/dynoxide", tar.TypeLink, false},
		"without directory": {"dynoxide", tar.TypeReg, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			body := content
			if c.typeflag != tar.TypeReg {
				body = nil
			}
			got, err := pinned.extract(tarballOf(t, c.name, c.typeflag, body))
			if c.ok != (err == nil) || c.ok && !bytes.Equal(got, content) {
				t.Fatalf("got %q, %v", got, err)
			}
		})
	}
	for name, broken := range map[string][]byte{"empty": nil, "no gzip": []byte("hello")} {
		if _, err := pinned.extract(broken); err == nil {
			t.Errorf("%s tarball was accepted", name)
		}
	}
}

// A platform without a pinned sum: the sum is noted when unpacked and compared
// from then on.
func TestNotedSumGuardsTheCache(t *testing.T) {
	fakeNPM(t, tarballOf(t, "package/dynoxide", tar.TypeReg, []byte("engine")))
	r := releases["linux/arm64"]
	cache := t.TempDir()
	if err := verify(r, cache); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("empty cache: %v", err)
	}
	if err := r.fetch(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	if err := verify(r, cache); err != nil {
		t.Fatal(err)
	}
	writeFile(t, r.path(cache), []byte("enginE"), 0o755)
	if err := verify(r, cache); !errors.Is(err, ErrChecksum) {
		t.Fatalf("changed file: %v, want ErrChecksum", err)
	}
}

func TestCorruptedCacheIsNeverRun(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	t.Setenv("AWS_ENDPOINT_URL", "")
	here, err := currentRelease()
	if err != nil {
		t.Fatal(err)
	}
	cache, mark := t.TempDir(), filepath.Join(t.TempDir(), "it-ran")
	writeFile(t, here.path(cache), []byte("#!/bin/sh\necho >'"+mark+"'\n"), 0o755)
	if here.binarySum == "" {
		writeFile(t, filepath.Join(here.folder(cache), here.sumName()), []byte(strings.Repeat("0", 128)), 0o600)
	}

	t.Run("nothing to replace it", func(t *testing.T) {
		t.Setenv("PATH", "")
		_, err := Start(t.Context(), Config{CacheDir: cache})
		if !errors.Is(err, ErrChecksum) || !errors.Is(err, ErrNoEngine) {
			t.Fatalf("got %v, want ErrChecksum and ErrNoEngine", err)
		}
	})
	t.Run("replaced by a fresh one", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		e, err := Start(ctx, Config{CacheDir: cache})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the corrupted file was run: %v", err)
	}
}

// A busy file or a stolen port passes; a program that is no engine does not.
func TestProgramThatIsNoEngine(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Fatal("needs a shell")
	}
	broken := filepath.Join(t.TempDir(), "dynoxide")
	writeFile(t, broken, []byte("#!/bin/sh\necho 'error: out of luck' >&2\nexit 3\n"), 0o755)
	_, err := launch(t.Context(), program{path: broken}, "", Config{}.logger())
	if err == nil || !strings.Contains(err.Error(), "out of luck") || !strings.Contains(err.Error(), "exit status 3") {
		t.Fatalf("got %v, want the program's own words and status", err)
	}
}

// A launcher with the engine as its child, as npm installs them: both end.
func TestLauncherEndsWithItsChild(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	engine, err := find(ctx, Config{})
	if err != nil {
		t.Fatal(err)
	}
	launcher := filepath.Join(t.TempDir(), "dynoxide")
	writeFile(t, launcher, []byte("#!/bin/sh\n'"+engine.path+"' \"$@\"\necho ended\n"), 0o755)
	p, err := launch(ctx, program{path: launcher}, "", Config{}.logger())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p.stop()
	// The child holds the output open. Had it survived, only WaitDelay would
	// have ended the wait.
	if took := time.Since(began); took >= p.cmd.WaitDelay {
		t.Fatalf("stop took %v: the child survived", took)
	}
}

func verify(r release, cache string) error {
	_, err := r.load(cache)
	return err
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// fakeTest is a test that notes why it failed.
type fakeTest struct {
	TB
	said string
}

func (*fakeTest) Helper() {}
func (f *fakeTest) Fatalf(format string, args ...any) {
	f.said += fmt.Sprintf(format, args...)
}

// The test of an engine that ended in the middle is told so, beside refused connections.
func TestAnEngineThatEndsByItselfIsToldOf(t *testing.T) {
	t.Setenv(envServiceEndpoint, "")
	t.Setenv(envEndpoint, "")
	for _, killed := range []bool{false, true} {
		e, err := Start(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if killed {
			kill(e.process.cmd.Process)
			<-e.process.exited
			want = "localdb: the engine at " + e.Endpoint() + " ended by itself: " + e.process.cmd.ProcessState.String() + ": "
		}
		test := &fakeTest{}
		if e.closeFor(test); !strings.HasPrefix(test.said, want) || (test.said != "") != killed {
			t.Errorf("the test was told %q, want %q", test.said, want)
		}
		if err := e.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	}
}
