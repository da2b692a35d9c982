package localdb

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Bounds on what is read, many times the real sizes (3.5 and 7.6 MB), so that
// a wrong package cannot fill memory or disk.
const (
	maxTarball = 64 << 20
	maxBinary  = 256 << 20
	maxSum     = 1 << 10
)

// workPrefix begins the names of the folders in which processes fetch, and of files that they
// have not finished.
const workPrefix = ".fetch-"

// fetch puts the release into the cache. Other processes may do the same at
// the same time: each works in a folder of its own and moves the finished file
// into place, so that nobody ever sees half of it.
func (r release) fetch(ctx context.Context, cacheDir string) error {
	folder := r.folder(cacheDir)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	cache, err := r.openFolder(cacheDir)
	if err != nil {
		return err
	}
	defer cache.Close()
	clearUp(folder)
	work, err := privateFolder(workPrefix, folder, os.TempDir())
	if err != nil {
		return fmt.Errorf("folder for npm: %w", err)
	}
	defer os.RemoveAll(work)

	tarball, err := r.download(ctx, work)
	if err != nil {
		return err
	}
	binary, err := r.extract(tarball)
	if err != nil {
		return err
	}
	sum := sha512.Sum512(binary)
	hexSum := hex.EncodeToString(sum[:])
	if r.binarySum != "" && hexSum != r.binarySum {
		return fmt.Errorf("%w: %s in %s", ErrChecksum, r.binary, r.spec())
	}
	if r.binarySum == "" {
		// The sum first: a binary without one would be refused.
		if err := place(cache, r.sumName(), []byte(hexSum+"\n"), 0o600); err != nil {
			return err
		}
	}
	return place(cache, r.binary, binary, 0o755)
}

// abandoned is the age from which a folder is taken for that of a process which was killed
// while it fetched.
const abandoned = time.Hour

// clearUp removes what killed processes have left. What cannot be removed does no harm.
func clearUp(folder string) {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && strings.HasPrefix(entry.Name(), workPrefix) && time.Since(info.ModTime()) > abandoned {
			_ = os.RemoveAll(filepath.Join(folder, entry.Name()))
		}
	}
}

// npmDelay is how long the output of an npm that was ended is waited for.
const npmDelay = 5 * time.Second

// download lets npm bring the tarball and returns its checked content.
func (r release) download(ctx context.Context, work string) ([]byte, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return nil, fmt.Errorf("nothing configured, no dynoxide of version "+version+" on the PATH or in the cache, and no npm to fetch it: %w", err)
	}
	// A package of its own: npm looks for a project, and for that project's settings, in the
	// folders above too, which may be anybody's. The user's settings hold, and the machine's:
	// --prefix would end the search too, and hide those.
	if err := os.WriteFile(filepath.Join(work, "package.json"), []byte(`{"private":true}`), 0o600); err != nil {
		return nil, fmt.Errorf("cache folder: %w", err)
	}
	user := userSettings()
	said, _, _ := runNPM(ctx, npm, work, npmEnvironment(user), "config", "get", "globalconfig") // where none is said there is none
	machine := strings.TrimSpace(said)
	if _, output, err := runNPM(ctx, npm, work, npmEnvironment(user, machine), "pack", "--loglevel=error", "--ignore-scripts", "--workspaces=false", "--pack-destination", work, r.spec()); err != nil {
		return nil, fmt.Errorf("npm pack %s: %w: %s", r.spec(), err, output)
	}
	found, err := fs.Glob(os.DirFS(work), "*.tgz") // of the folder's own name nothing is a pattern
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("npm pack %s left %d tarballs instead of one", r.spec(), len(found))
	}
	return r.readTarball(filepath.Join(work, found[0]))
}

// runNPM runs npm in a folder, on a leash as an engine is: it may be a launcher of the real one.
func runNPM(ctx context.Context, npm, work string, env []string, args ...string) (said, output string, err error) {
	var out, errs bytes.Buffer
	p := &process{cmd: command(npm, nil, args...), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = work, env // nothing is written elsewhere
	p.cmd.Stdout, p.cmd.Stderr = &out, &errs
	p.cmd.WaitDelay = npmDelay
	if err = p.start(); err == nil {
		err = p.wait(ctx)
	}
	return out.String(), strings.TrimSpace(out.String() + errs.String()), err
}

// readTarball reads the file once and checks those bytes, so that nothing can
// change between the check and the unpacking.
func (r release) readTarball(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tarball: %w", err)
	}
	defer f.Close()
	content, err := readBounded(f, maxTarball)
	if err != nil {
		return nil, fmt.Errorf("tarball of %s: %w", r.spec(), err)
	}
	if r.tarballSum == "" {
		return content, nil // npm compared it with the registry's own sum
	}
	if sum := sha512.Sum512(content); base64.StdEncoding.EncodeToString(sum[:]) != r.tarballSum {
		return nil, fmt.Errorf("%w: tarball of %s", ErrChecksum, r.spec())
	}
	return content, nil
}

// extract returns the one file that is wanted. Names in the tarball are only
// compared, never used as paths.
func (r release) extract(tarball []byte) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(tarball))
	if err != nil {
		return nil, fmt.Errorf("tarball of %s: %w", r.spec(), err)
	}
	archive := tar.NewReader(zip)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("no package/%s in the tarball of %s", r.binary, r.spec())
		}
		if err != nil {
			return nil, fmt.Errorf("tarball of %s: %w", r.spec(), err)
		}
		if header.Name != "package/"+r.binary || header.Typeflag != tar.TypeReg {
			continue
		}
		binary, err := readBounded(archive, maxBinary)
		if err != nil {
			return nil, fmt.Errorf("tarball of %s: %w", r.spec(), err)
		}
		return binary, nil
	}
}

func readBounded(r io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("larger than %d bytes", limit)
	}
	return content, err
}

// place writes content under a name of its own and moves it to its name in the cache, whose
// folder is the open one, wherever its path leads by now.
func place(cache *os.Root, name string, content []byte, mode os.FileMode) error {
	temp := workPrefix + rand.Text()
	err := cache.WriteFile(temp, content, mode)
	if err == nil {
		err = cache.Chmod(temp, mode) // WriteFile's is narrowed by the umask
	}
	if err == nil {
		err = cache.Rename(temp, name)
	}
	if err != nil {
		_ = cache.Remove(temp)
		return fmt.Errorf("cache folder: %w", err)
	}
	return nil
}
