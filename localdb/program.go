package localdb

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// A program is an engine that may be run. One of the cache is run as the bytes that were
// verified, wherever its path leads by then; one of the PATH by its path.
type program struct {
	path string // where it was found

	sealed  *os.File // the verified bytes, in memory, where the system runs such a file
	content []byte   // the verified bytes elsewhere: they are run from a private copy
}

// command is the program's command line. discard removes what it was run from: it is called
// when the program has begun, and again when it is gone, for systems that keep a file that runs.
func (p program) command(args ...string) (cmd *exec.Cmd, discard func(), err error) {
	discard = func() {}
	path := p.path
	if p.content != nil {
		if path, discard, err = privateCopy(p.content, filepath.Base(p.path)); err != nil {
			return nil, discard, err
		}
	}
	cmd = command(path, p.sealed, args...)
	cmd.Env = environment(engineVariables)
	return cmd, discard, nil
}

// privateCopy writes a program into a folder that nobody else can write to, or exchange.
func privateCopy(content []byte, name string) (path string, discard func(), err error) {
	dir, err := privateFolder("dynahold-engine-", os.TempDir())
	if err != nil {
		return "", func() {}, fmt.Errorf("localdb: private copy: %w", err)
	}
	discard = func() { _ = os.RemoveAll(dir) }
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o500); err != nil {
		discard()
		return "", func() {}, fmt.Errorf("localdb: private copy: %w", err)
	}
	return path, discard, nil
}

// images keeps the file in memory that was verified last, so that a process which starts
// many engines reads and verifies once. It is used for as long as the cache's file is the same:
// one that has changed is noticed, and refused, as at the first start. One that is replaced here
// may still be about to run: it is closed when nothing refers to it.
var images struct {
	sync.Mutex
	path  string
	of    fs.FileInfo
	found time.Time
	file  *os.File
}

// settled is how old a file's last change must be for its time to tell that it has not
// changed since: clocks of file systems are coarse.
const settled = time.Second

func kept(path string, info fs.FileInfo) *os.File {
	images.Lock()
	defer images.Unlock()
	same := images.file != nil && images.path == path && os.SameFile(images.of, info) &&
		images.of.Size() == info.Size() && images.of.ModTime().Equal(info.ModTime()) && images.of.Mode() == info.Mode()
	if !same || images.found.Sub(info.ModTime()) < settled {
		return nil
	}
	return images.file
}

func keep(path string, info fs.FileInfo, file *os.File) {
	images.Lock()
	defer images.Unlock()
	images.path, images.of, images.found, images.file = path, info, time.Now(), file
}
