//go:build unix

package localdb

import (
	"archive/tar"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// filled is a cache folder with the real engine in it.
func filled(t *testing.T) (r release, cache string) {
	t.Helper()
	r, err := currentRelease()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := fetched(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(engine.path)
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(t.TempDir(), "cache")
	writeFile(t, r.path(cache), content, 0o755)
	if noted, err := os.ReadFile(filepath.Join(filepath.Dir(engine.path), filepath.Base(filepath.Join(r.folder(cache), r.sumName())))); err == nil {
		writeFile(t, filepath.Join(r.folder(cache), r.sumName()), noted, 0o600)
	}
	return r, cache
}

func TestACacheOfOthersIsRefused(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	t.Setenv("AWS_ENDPOINT_URL", "")
	mode := func(mode os.FileMode, of func(release, string) string) func(*testing.T, release, string) string {
		return func(t *testing.T, r release, cache string) string {
			if err := os.Chmod(of(r, cache), mode); err != nil {
				t.Fatal(err)
			}
			return cache
		}
	}
	whole := func(_ release, cache string) string { return cache }
	cases := map[string]struct {
		arrange func(*testing.T, release, string) string
		says    string
	}{
		"others may write":              {mode(0o777, whole), "lets other users write"},
		"the group may write":           {mode(0o770, whole), "lets other users write"},
		"all may write, each their own": {mode(0o777|os.ModeSticky, whole), "lets other users write"},
		"the engine's folder":           {mode(0o702, release.folder), "lets other users write"},
		"a link": {func(t *testing.T, _ release, cache string) string {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(cache, link); err != nil {
				t.Fatal(err)
			}
			return link
		}, "it is a link"},
		"the engine's folder is a link": {func(t *testing.T, r release, cache string) string {
			real := filepath.Join(t.TempDir(), "real")
			if err := errors.Join(os.Rename(r.folder(cache), real), os.Symlink(real, r.folder(cache))); err != nil {
				t.Fatal(err)
			}
			return cache
		}, "it is a link"},
	}
	if os.Geteuid() == 0 { // nobody else can give a folder away
		c := cases["a link"]
		c.says, c.arrange = "owns it", func(t *testing.T, _ release, cache string) string {
			if err := os.Chown(cache, 4711, 4711); err != nil {
				t.Fatal(err)
			}
			return cache
		}
		cases["another owner"] = c
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, cache := filled(t)
			_, err := Start(t.Context(), Config{CacheDir: c.arrange(t, r, cache)})
			for _, part := range []string{c.says, "Config.CacheDir", "AWS_ENDPOINT_URL_DYNAMODB"} {
				if !errors.Is(err, ErrNoEngine) || !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

// ofUser is a folder of a user.
type ofUser struct {
	os.FileInfo
	uid uint32
}

func (o ofUser) Sys() any { return &syscall.Stat_t{Uid: o.uid} }

func TestOwnersThatAreTrusted(t *testing.T) {
	info, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	me := uint32(os.Geteuid())
	for uid, trusted := range map[uint32]bool{0: true, me: true, me + 4711: false} {
		if err := owned(ofUser{info, uid}); (err == nil) != trusted && info.Mode()&0o022 == 0 {
			t.Errorf("user %d: %v", uid, err)
		}
	}
}

// What is run is what was verified: exchanging the file, or all that leads to it, changes nothing.
func TestWhatIsExchangedAfterTheCheckIsNotRun(t *testing.T) {
	for name, exchange := range map[string]func(t *testing.T, r release, cache string, evil []byte) error{
		"another file": func(_ *testing.T, r release, cache string, evil []byte) error {
			return errors.Join(os.Remove(r.path(cache)), os.WriteFile(r.path(cache), evil, 0o755))
		},
		"written into": func(_ *testing.T, r release, cache string, evil []byte) error {
			return os.WriteFile(r.path(cache), evil, 0o755)
		},
		"another folder": func(t *testing.T, r release, cache string, evil []byte) error {
			if err := os.Rename(cache, cache+".was"); err != nil {
				return err
			}
			writeFile(t, r.path(cache), evil, 0o755)
			return nil
		},
	} {
		for _, sealed := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				r, cache := filled(t)
				engine, err := fetched(t.Context(), Config{CacheDir: cache})
				if err != nil {
					t.Fatal(err)
				}
				if !sealed { // as on a system that runs no files in memory
					if engine.content, err = os.ReadFile(r.path(cache)); err != nil {
						t.Fatal(err)
					}
					engine.sealed = nil
				}
				mark := filepath.Join(t.TempDir(), "it-ran")
				if err := exchange(t, r, cache, []byte("#!/bin/sh\necho >'"+mark+"'\n")); err != nil {
					t.Fatal(err)
				}
				temp := t.TempDir()
				t.Setenv("TMPDIR", temp)
				p, err := launch(t.Context(), engine, "", Config{}.logger())
				if err != nil {
					t.Fatal(err)
				}
				p.stop()
				if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the exchanged file was run: %v", err)
				}
				if left, _ := os.ReadDir(temp); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				// The next start sees that it is another one.
				t.Setenv("PATH", "")
				if _, err := fetched(t.Context(), Config{CacheDir: cache}); !errors.Is(err, ErrChecksum) {
					t.Errorf("afterwards: %v, want ErrChecksum", err)
				}
			})
		}
	}
}

// Programs that note their environment stand in for npm and for the engine.
func TestChildrenGetNoCredentials(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-account")
	t.Setenv("DATABASE_PASSWORD", "secret-of-another")
	t.Setenv("MIRROR_TOKEN", "for-npm")
	t.Setenv("npm_config_registry", "http://mirror.example/")
	t.Setenv("NPM_CONFIG_LOCAL_PREFIX", "/project")
	t.Setenv("https_proxy", "http://proxy.example/")
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("npm_config_userconfig", "")
	writeFile(t, filepath.Join(home, ".npmrc"), []byte("//mirror.example/:_authToken=${MIRROR_TOKEN}\n"), 0o600)

	env, err := exec.LookPath("env")
	if err != nil {
		t.Fatal(err)
	}
	dir, note := t.TempDir(), filepath.Join(t.TempDir(), "environment")
	script := []byte("#!/bin/sh\n" + env + " >'" + note + "'\nexit 1\n")
	writeFile(t, filepath.Join(dir, "npm"), script, 0o700)
	writeFile(t, filepath.Join(dir, "dynoxide"), script, 0o700)
	t.Setenv("PATH", dir)
	for name, run := range map[string]func(){
		"npm":         func() { _ = pinned.fetch(t.Context(), filepath.Join(t.TempDir(), "cache")) },
		"the version": func() { _ = checkVersion(t.Context(), filepath.Join(dir, "dynoxide")) },
		"the engine": func() {
			_, _ = launch(t.Context(), program{path: filepath.Join(dir, "dynoxide")}, "", Config{}.logger())
		},
	} {
		run()
		content, err := os.ReadFile(note)
		if err != nil {
			t.Fatal(name, err)
		}
		_ = os.Remove(note)
		got := string(content)
		for _, secret := range []string{"secret-of-the-account", "secret-of-another", "/project"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s was given %s:\n%s", name, secret, got)
			}
		}
		for _, setting := range []string{"MIRROR_TOKEN=for-npm", "npm_config_registry=http://mirror.example/", "https_proxy=", "HOME=" + home} {
			if name == "npm" && !strings.Contains(got, setting) {
				t.Errorf("npm was not given %s:\n%s", setting, got)
			}
		}
		if name != "npm" && strings.Contains(got, "MIRROR_TOKEN") {
			t.Errorf("%s was given npm's token", name)
		}
	}
}

// What lies in the folders above says nothing to npm; the user's own settings do.
func TestNPMKnowsTheUsersSettingsAlone(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Fatal(err)
	}
	var asked, hostile atomic.Int32
	count := func(n *atomic.Int32) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			w.WriteHeader(http.StatusNotFound)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	evil, good := count(&hostile), count(&asked)
	above, home := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(above, "package.json"), []byte(`{"name":"evil","workspaces":["**","cache/**"]}`), 0o600)
	writeFile(t, filepath.Join(above, ".npmrc"), []byte("registry="+evil+"/\n@dynoxide:registry="+evil+"/\n"), 0o600)
	writeFile(t, filepath.Join(home, ".npmrc"), []byte("registry="+good+"/\nfetch-retries=0\n"), 0o600)
	t.Setenv("HOME", home)
	t.Setenv("npm_config_cache", filepath.Join(home, "npm"))
	t.Setenv("npm_config_userconfig", filepath.Join(home, ".npmrc"))
	t.Chdir(above)
	if err := pinned.fetch(t.Context(), filepath.Join(above, "cache")); err == nil {
		t.Error("there is nothing to be had")
	}
	if asked.Load() == 0 || hostile.Load() != 0 {
		t.Errorf("the user's server was asked %d times, the one named above %d times", asked.Load(), hostile.Load())
	}
}

// The machine's settings, of a mirror or of its certificates, hold as they do for any npm.
func TestNPMKnowsTheMachinesSettings(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("npm_config_globalconfig", "") // where npm itself looks for them
	if err := os.Unsetenv("npm_config_globalconfig"); err != nil {
		t.Fatal(err)
	}
	want, err := exec.Command(npm, "config", "get", "globalconfig").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, note := t.TempDir(), filepath.Join(t.TempDir(), "note")
	writeFile(t, filepath.Join(dir, "npm"), []byte("#!/bin/sh\nshift\n'"+npm+"' config get globalconfig \"$@\" >'"+note+"'\nexit 1\n"), 0o700)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	_ = pinned.fetch(t.Context(), filepath.Join(t.TempDir(), "cache"))
	if got, err := os.ReadFile(note); err != nil || !strings.Contains(string(got), strings.TrimSpace(string(want))) {
		t.Errorf("npm looks for them at %s, %v; want %s", got, err, want)
	}
}

func TestFilesOfAnEngineAreItsUsersAlone(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	t.Setenv("AWS_ENDPOINT_URL", "")
	defer syscall.Umask(syscall.Umask(0))
	for name, before := range map[string]os.FileMode{"new": 0, "of an earlier run": 0o666} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "data.db")
			if before != 0 {
				writeFile(t, file, nil, before)
			}
			e, err := Start(t.Context(), Config{Path: file})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			files := filesIn(t, filepath.Dir(file))
			for _, name := range files {
				if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %v", name, info.Mode(), err)
				}
			}
			t.Log(files)
		})
	}
}

// A tarball that is a pipe or a link to elsewhere is none.
func TestACachedFileThatIsNoneIsNotWaitedFor(t *testing.T) {
	r, cache := filled(t)
	if err := errors.Join(os.Remove(r.path(cache)), syscall.Mkfifo(r.path(cache), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.load(cache); !errors.Is(err, ErrChecksum) {
		t.Errorf("a pipe: %v", err)
	}
	fakeNPM(t, tarballOf(t, "package/dynoxide", tar.TypeReg, []byte("engine")))
	other := releases["linux/arm64"]
	if err := other.fetch(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(other.folder(cache), other.sumName()), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := other.load(cache); err == nil {
		t.Error("a noted sum that others may write is believed")
	}
}

// A folder in which others may put files, and a file that is theirs, are no place for data.
func TestDataOfAnEngineAreNotWhereOthersCanGetAtThem(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	t.Setenv("AWS_ENDPOINT_URL", "")
	cases := map[string]func(dir, file string) error{
		"everybody may write":           func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"all may write, each their own": func(dir, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) },
	}
	if os.Geteuid() == 0 { // nobody else can give a file away
		cases["a file of another"] = func(_, file string) error { return os.Chown(file, 4711, 4711) }
		cases["a folder of another"] = func(dir, _ string) error { return os.Chown(dir, 4711, 4711) }
		cases["a log of another"] = func(_, file string) error {
			return errors.Join(os.WriteFile(file+"-wal", nil, 0o600), os.Chown(file+"-wal", 4711, 4711))
		}
	}
	for name, arrange := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			file := filepath.Join(dir, "data.db")
			writeFile(t, file, nil, 0o600)
			if err := arrange(dir, file); err != nil {
				t.Fatal(err)
			}
			e, err := Start(t.Context(), Config{Path: file})
			if err == nil {
				_ = e.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "Config.Path") {
				t.Errorf("%v", err)
			}
		})
	}
}
