package localdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// keepPrivate makes an engine's file, and those that the engine keeps beside it, its user's
// alone. SQLite gives new ones beside it the mode of the file itself. A link in the place of
// one of them may be another's, and lead to any file of the user's: it is refused, and so is a
// folder in which others could put one there at any moment. It returns the absolute path: a
// name alone could be an option, or one that SQLite keeps in memory, such as ":memory:".
func keepPrivate(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	path, err := filepath.Abs(path)
	var folder *os.Root
	if err == nil {
		folder, err = os.OpenRoot(filepath.Dir(path))
	}
	if err == nil {
		defer folder.Close()
		err = checkPrivate(folder, filepath.Base(path))
	}
	if err != nil {
		return "", fmt.Errorf("localdb: Config.Path: %w", err)
	}
	return path, nil
}

// lockEnd names the file whose lock an engine's owner holds.
const lockEnd = "-lock"

func checkPrivate(folder *os.Root, name string) error {
	is, err := folder.Stat(".")
	if err != nil {
		return err
	}
	if err := ours(is); err != nil {
		return &fs.PathError{Op: "trust", Path: folder.Name(), Err: err}
	}
	if runtime.GOOS != "windows" && is.Mode()&0o002 != 0 {
		return &fs.PathError{Op: "trust", Path: folder.Name(), Err: fmt.Errorf("its mode %v lets everybody put files there: name a folder of your own", is.Mode())}
	}
	for _, end := range []string{"", "-wal", "-shm", "-journal", lockEnd} {
		info, err := folder.Lstat(name + end)
		switch {
		case errors.Is(err, fs.ErrNotExist) && end == "":
			err = folder.WriteFile(name, nil, 0o600)
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		case err != nil:
		case !info.Mode().IsRegular():
			err = fmt.Errorf("%s is no regular file: name the file itself, no link to it", filepath.Join(folder.Name(), name+end))
		default:
			if err = ours(info); err == nil && info.Mode().Perm() != 0o600 {
				err = folder.Chmod(name+end, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
