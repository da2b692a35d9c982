//go:build unix

package localdb

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// owned refuses a file or folder that another user could change. The system's administrator
// can change everything: what is root's is trusted.
func owned(info fs.FileInfo) error {
	if err := ours(info); err != nil {
		return err
	}
	if mode := info.Mode(); mode&0o022 != 0 {
		return fmt.Errorf("its mode %v lets other users write: chmod go-w, if you know what is in it, or name another folder (Config.CacheDir)", mode)
	}
	return nil
}

// ours refuses what another user owns.
func ours(info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int64(s.Uid) != int64(os.Geteuid()) {
		return fmt.Errorf("user %d owns it, and this is user %d: name one of your own (Config.CacheDir, Config.Path)", s.Uid, os.Geteuid())
	}
	return nil
}

// guarded refuses a folder in which another user could exchange what is this user's, or which
// another user could exchange, or one above. Whatever stands in a folder with the sticky bit
// is exchanged by its owner alone.
func guarded(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err == nil {
			err = ours(info)
		}
		if err == nil && info.Mode()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
			err = fmt.Errorf("its mode %v lets other users exchange what is in it", info.Mode())
		}
		if err != nil {
			return refused(at, err)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// exclude locks a file, unless another has.
func exclude(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// openFlags open no link, and do not wait where the file is a pipe.
const openFlags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
