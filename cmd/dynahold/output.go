package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

// file is written as a whole or not at all. It is opened before the work, so
// that nobody waits a minute to learn that there is no such folder.
type file struct {
	path string   // of a regular file or of none yet, never of a link
	temp *os.File // nil: no file is wanted, or it is finished
}

// checkFile refuses what is no name of a file: the parser takes what follows a flag for its
// value, whatever that is.
func checkFile(flag string, name *string) error {
	if name != nil && (*name == "" || strings.HasPrefix(*name, "-")) {
		return fmt.Errorf("%s needs a file, not %q; a name that begins with a hyphen needs its folder: ./-x", flag, *name)
	}
	return nil
}

// openReport opens the file of --html; nil: none is wanted.
func openReport(html *string) (*file, error) {
	if html == nil {
		return &file{}, nil
	}
	given := kong.ExpandPath(*html)
	path, mode, err := destination(given)
	if err != nil {
		return nil, err
	}
	folder := filepath.Dir(path)
	// As readable as the process's other files: os.CreateTemp would hide it.
	temp, err := os.OpenFile(filepath.Join(folder, ".dynahold-"+rand.Text()+".html"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage("--html: there is no folder %s", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("--html: %w", err)
	}
	f := &file{path: path, temp: temp}
	if mode != 0 {
		if err := temp.Chmod(mode); err != nil {
			f.discard()
			return nil, fmt.Errorf("--html: %w", err)
		}
	}
	return f, nil
}

// destination is the file that a path leads to, over links, and the mode that
// it has; 0 where there is none yet. Only a regular file that may be written is
// replaced: a device or a pipe would be gone.
func destination(given string) (path string, mode fs.FileMode, err error) {
	path, err = filepath.EvalSymlinks(given)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(given); err == nil {
			return "", 0, usage("--html: %s is a link to a file that does not exist", given)
		}
		return given, 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("--html: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", 0, fmt.Errorf("--html: %w", err)
	case info.IsDir():
		return "", 0, usage("--html: %s is a folder", given)
	case !info.Mode().IsRegular():
		return "", 0, usage("--html: %s is no regular file, and would be replaced by one", given)
	}
	old, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return "", 0, fmt.Errorf("--html: %w", err)
	}
	return path, info.Mode().Perm(), old.Close()
}

// replaces reports whether it is written in place of another file.
func (f *file) replaces(path string) bool {
	old, oldErr := os.Stat(f.path)
	other, err := os.Stat(path)
	return oldErr == nil && err == nil && os.SameFile(old, other)
}

func (f *file) write(content func(io.Writer) error) error {
	if f.temp == nil {
		return nil
	}
	err := errors.Join(content(f.temp), f.temp.Close())
	if err == nil {
		err = os.Rename(f.temp.Name(), f.path)
	}
	if err != nil {
		return err
	}
	f.temp = nil
	return nil
}

// discard removes what was not finished.
func (f *file) discard() {
	if f.temp != nil {
		_ = f.temp.Close()
		_ = os.Remove(f.temp.Name())
		f.temp = nil
	}
}
