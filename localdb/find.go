package localdb

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// fetching holds a token while a goroutine of this process looks into the
// cache and may fetch, so that parallel tests run npm once and not each. A
// channel instead of a mutex, because waiting must end with the context.
var fetching = make(chan struct{}, 1)

// find returns an engine that may be run.
func find(ctx context.Context, cfg Config) (program, error) {
	// A match in the current folder comes with exec.ErrDot and is left
	// alone: what lies there by chance must not be run.
	var onPath error // why the one on the PATH is not used
	if path, err := exec.LookPath("dynoxide"); err == nil {
		if onPath = checkVersion(ctx, path); onPath == nil {
			cfg.logger().DebugContext(ctx, "engine on the PATH", "path", path)
			return program{path: path}, nil
		}
		cfg.logger().WarnContext(ctx, "engine on the PATH not used, looking for the fetched one", "path", path, "reason", onPath)
	}
	engine, err := fetched(ctx, cfg)
	if err != nil {
		return program{}, errors.Join(err, onPath)
	}
	return engine, nil
}

// versionWait is how long a program may take to say its version.
const versionWait = 10 * time.Second

// checkVersion refuses a program that is not the engine at the version against
// which this library is tested: others differ in what they answer.
func checkVersion(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = environment(engineVariables)
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

// fetched returns the engine in the cache, and brings it there if it is not.
func fetched(ctx context.Context, cfg Config) (program, error) {
	r, err := currentRelease()
	if err != nil {
		return program{}, noEngine(err)
	}
	dir, err := cfg.cacheDir()
	if err != nil {
		return program{}, noEngine(err)
	}

	select {
	case fetching <- struct{}{}:
		defer func() { <-fetching }()
	case <-ctx.Done():
		return program{}, fmt.Errorf("localdb: waiting for another start to fetch the engine: %w", context.Cause(ctx))
	}

	engine, cacheErr := r.load(dir)
	switch {
	case cacheErr == nil:
		return engine, nil
	case errors.Is(cacheErr, fs.ErrNotExist):
		cacheErr = nil // not there yet: nothing worth reporting
	case errors.Is(cacheErr, errNotOurs):
		return program{}, noEngine(cacheErr)
	default:
		// It is replaced and not merely reported: a file that a full disk
		// cut short must not stop every later run.
		cfg.logger().WarnContext(ctx, "cached engine refused, fetching a fresh one", "error", cacheErr)
	}
	cfg.logger().InfoContext(ctx, "fetching the engine through npm", "package", r.spec())
	// Where it fails another process may have brought the engine meanwhile, and run it: some
	// systems do not let a file be replaced that is being run.
	fetchErr := r.fetch(ctx, dir)
	engine, err = r.load(dir)
	switch {
	case err == nil:
		return engine, nil
	case fetchErr != nil:
		return program{}, noEngine(errors.Join(fetchErr, cacheErr))
	}
	return program{}, noEngine(err) // it was exchanged in between
}

// load returns the engine of the cache, if it is the release, unchanged. What is run is what
// was verified here: whatever becomes of the path, the bytes are these.
func (r release) load(cacheDir string) (program, error) {
	folder, err := r.openFolder(cacheDir)
	if err != nil {
		return program{}, err
	}
	defer folder.Close()
	want, err := r.expectedSum(folder)
	if err != nil {
		return program{}, err
	}
	path := r.path(cacheDir)
	f, info, err := openOwned(folder, r.binary)
	if err != nil {
		return program{}, err
	}
	defer f.Close()
	if runtime.GOOS != "windows" && info.Mode()&0o100 == 0 { // such as a cache that was restored without its modes
		return program{}, &fs.PathError{Op: "run", Path: path, Err: fs.ErrPermission}
	}
	if file := kept(path+" "+want, info); file != nil {
		return program{path: path, sealed: file}, nil
	}
	content, err := readBounded(f, maxBinary)
	if err != nil {
		return program{}, err
	}
	if sum := sha512.Sum512(content); hex.EncodeToString(sum[:]) != want {
		return program{}, &fs.PathError{Op: "verify", Path: path, Err: ErrChecksum}
	}
	file, err := seal(content)
	if err != nil {
		return program{path: path, content: content}, nil // a copy serves as well
	}
	keep(path+" "+want, info, file)
	return program{path: path, sealed: file}, nil
}
