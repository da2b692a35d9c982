package localdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// errNotOurs says that a folder or a file is not this user's alone.
var errNotOurs = errors.New("cache not used")

// refused says why something is not trusted.
func refused(path string, why error) error {
	return fmt.Errorf("%w: %w", errNotOurs, &fs.PathError{Op: "trust", Path: path, Err: why})
}

// openFolder opens the release's folder in the cache. It refuses a cache that is not this
// user's own: what is in it could be exchanged at any moment, the sums that were noted too. The
// folders above may be what they are: what is read and written from now on is in the folder
// that is open, whatever comes to stand under its name.
func (r release) openFolder(cacheDir string) (*os.Root, error) {
	cache, err := openOurs(cacheDir, os.Lstat, os.OpenRoot)
	if err != nil {
		return nil, fmt.Errorf("cache folder: %w", err)
	}
	defer cache.Close()
	folder, err := openOurs(r.folderName(), cache.Lstat, cache.OpenRoot)
	if err != nil {
		return nil, fmt.Errorf("cache folder: %w", err)
	}
	return folder, nil
}

// openOurs opens a folder that is no link, and that others neither own nor may write to.
func openOurs(name string, look func(string) (fs.FileInfo, error), open func(string) (*os.Root, error)) (*os.Root, error) {
	found, err := look(name)
	switch {
	case err != nil:
		return nil, err
	case found.Mode().Type() == fs.ModeSymlink:
		return nil, refused(name, errors.New("it is a link: name the folder itself, or another one (Config.CacheDir)"))
	}
	folder, err := open(name)
	if err != nil {
		return nil, err
	}
	is, err := folder.Stat(".")
	if err == nil && !os.SameFile(found, is) {
		err = errors.New("it was exchanged meanwhile")
	}
	if err == nil {
		err = owned(is)
	}
	if err != nil {
		return nil, errors.Join(refused(name, err), folder.Close())
	}
	return folder, nil
}

// openOwned opens a file of the cache, which must be this user's own.
func openOwned(folder *os.Root, name string) (*os.File, fs.FileInfo, error) {
	path := filepath.Join(folder.Name(), name)
	found, err := folder.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !found.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "verify", Path: path, Err: ErrChecksum}
	}
	f, err := folder.OpenFile(name, openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "verify", Path: path, Err: ErrChecksum}
	}
	if err == nil {
		if why := owned(info); why != nil {
			err = &fs.PathError{Op: "trust", Path: path, Err: why}
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// privateFolder makes a folder of this user alone in the first of some in which nobody else can
// exchange it: what works by paths, as npm does, would go on in another one's.
func privateFolder(prefix string, in ...string) (string, error) {
	var why []error
	for _, dir := range in {
		real, err := filepath.Abs(dir)
		if err == nil {
			real, err = filepath.EvalSymlinks(real)
		}
		if err == nil {
			err = guarded(real)
		}
		if err != nil {
			why = append(why, err)
			continue
		}
		return os.MkdirTemp(real, prefix+"*")
	}
	return "", errors.Join(why...)
}
