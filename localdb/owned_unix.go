//go:build unix

package localdb

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// owned refuses a file or folder that another user could change. The system's administrator
// can change everything: what is root's is trusted.
func owned(info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int64(s.Uid) != int64(os.Geteuid()) {
		return fmt.Errorf("user %d owns it, and this is user %d: name a folder of your own (Config.CacheDir)", s.Uid, os.Geteuid())
	}
	if mode := info.Mode(); mode&0o022 != 0 {
		return fmt.Errorf("its mode %v lets other users write: chmod go-w, if you know what is in it, or name another folder (Config.CacheDir)", mode)
	}
	return nil
}

// openFlags open no link, and do not wait where the file is a pipe.
const openFlags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
