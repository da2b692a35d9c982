package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// file is written as a whole or not at all. It is opened before the work, so
// that nobody waits a minute to learn that there is no such folder.
type file struct {
	path string
	temp *os.File // nil: no file is wanted, or it is finished
}

func (cmd *compareCommand) openReport() (*file, error) {
	if cmd.HTML == "" {
		return &file{}, nil
	}
	if info, err := os.Stat(cmd.HTML); err == nil && info.IsDir() {
		return nil, usageError{fmt.Sprintf("--html: %s is a folder", cmd.HTML)}
	}
	folder := filepath.Dir(cmd.HTML)
	temp, err := os.CreateTemp(folder, ".dynahold-*.html")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{fmt.Sprintf("--html: there is no folder %s", folder)}
	}
	if err != nil {
		return nil, fmt.Errorf("--html: %w", err)
	}
	return &file{path: cmd.HTML, temp: temp}, nil
}

func (f *file) write(content func(io.Writer) error) error {
	if f.temp == nil {
		return nil
	}
	err := errors.Join(content(f.temp), f.temp.Chmod(0o644), f.temp.Close()) //nolint:gosec // as readable as any report
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
