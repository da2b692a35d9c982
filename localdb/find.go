package localdb

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// fetching holds a token while a goroutine of this process looks into the
// cache and may fetch, so that parallel tests run npm once and not each. A
// channel instead of a mutex, because waiting must end with the context.
var fetching = make(chan struct{}, 1)

// find returns the path of an engine's binary that may be run.
func find(ctx context.Context, cfg Config) (string, error) {
	// A match in the current folder comes with exec.ErrDot and is left
	// alone: what lies there by chance must not be run.
	var onPath error // why the one on the PATH is not used
	if path, err := exec.LookPath("dynoxide"); err == nil {
		if onPath = checkVersion(ctx, path); onPath == nil {
			cfg.logger().DebugContext(ctx, "engine on the PATH", "path", path)
			return path, nil
		}
		cfg.logger().WarnContext(ctx, "engine on the PATH not used, looking for the fetched one", "path", path, "reason", onPath)
	}
	path, err := fetched(ctx, cfg)
	if err != nil {
		return "", errors.Join(err, onPath)
	}
	return path, nil
}

// versionWait is how long a program may take to say its version.
const versionWait = 10 * time.Second

// checkVersion refuses a program that is not the engine at the version against
// which this library is tested: others differ in what they answer.
func checkVersion(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second // a child may hold the output open
	output, err := cmd.Output()
	said := strings.TrimSpace(string(output))
	switch {
	case err != nil:
		return fmt.Errorf("localdb: %s does not say its version, %s is needed: %w", path, version, err)
	case said != "dynoxide "+version:
		return fmt.Errorf("localdb: %s says %q, version %s is needed", path, said, version)
	}
	return nil
}

// fetched returns the path of the engine in the cache, and brings it there if
// it is not.
func fetched(ctx context.Context, cfg Config) (string, error) {
	r, err := currentRelease()
	if err != nil {
		return "", noEngine(err)
	}
	dir, err := cfg.cacheDir()
	if err != nil {
		return "", noEngine(err)
	}

	select {
	case fetching <- struct{}{}:
		defer func() { <-fetching }()
	case <-ctx.Done():
		return "", fmt.Errorf("localdb: waiting for another start to fetch the engine: %w", context.Cause(ctx))
	}

	cacheErr := r.verify(dir)
	if cacheErr == nil {
		return r.path(dir), nil
	}
	if errors.Is(cacheErr, fs.ErrNotExist) {
		cacheErr = nil // not there yet: nothing worth reporting
	} else {
		// It is replaced and not merely reported: a file that a full disk
		// cut short must not stop every later run.
		cfg.logger().WarnContext(ctx, "cached engine refused, fetching a fresh one", "error", cacheErr)
	}
	cfg.logger().InfoContext(ctx, "fetching the engine through npm", "package", r.spec())
	// Where it fails another process may have brought the engine meanwhile, and run it: some
	// systems do not let a file be replaced that is being run.
	if err := r.fetch(ctx, dir); err != nil && r.verify(dir) != nil {
		return "", noEngine(errors.Join(err, cacheErr))
	}
	return r.path(dir), nil
}

// verify returns nil where the cache holds the release, unchanged, and it can be run.
func (r release) verify(cacheDir string) error {
	want, err := r.expectedSum(cacheDir)
	if err != nil {
		return err
	}
	f, err := os.Open(r.path(cacheDir))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "verify", Path: r.path(cacheDir), Err: ErrChecksum}
	}
	if runtime.GOOS != "windows" && info.Mode()&0o100 == 0 { // such as a cache that was restored without its modes
		return &fs.PathError{Op: "run", Path: r.path(cacheDir), Err: fs.ErrPermission}
	}
	hash := sha512.New()
	if _, err := io.Copy(hash, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want {
		return &fs.PathError{Op: "verify", Path: r.path(cacheDir), Err: ErrChecksum}
	}
	return nil
}
