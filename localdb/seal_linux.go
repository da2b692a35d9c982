package localdb

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// The numbers of Linux's memfd_create and of what it takes: package syscall has none of them.
var memfdCreate = map[string]uintptr{"amd64": 319, "arm64": 279}

const (
	memfdCloexec = 0x1
	memfdSealing = 0x2
	memfdExec    = 0x10 // since Linux 6.3

	addSeals = 1033
	allSeals = 0x1 | 0x2 | 0x4 | 0x8 // no more seals, no other size, no write
)

// seal returns a file in memory with the content, which can be run, and which nobody can
// change from now on, this process included.
func seal(content []byte) (*os.File, error) {
	number, ok := memfdCreate[runtime.GOARCH]
	if !ok {
		return nil, errors.ErrUnsupported
	}
	name := []byte("dynoxide\x00")
	create := func(flags uintptr) (uintptr, syscall.Errno) {
		fd, _, errno := syscall.Syscall(number, uintptr(unsafe.Pointer(&name[0])), flags, 0)
		return fd, errno
	}
	fd, errno := create(memfdCloexec | memfdSealing | memfdExec)
	if errno == syscall.EINVAL { // before 6.3 every such file can be run
		fd, errno = create(memfdCloexec | memfdSealing)
	}
	if errno != 0 {
		return nil, errno
	}
	f := os.NewFile(fd, "dynoxide")
	if _, err := f.Write(content); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, addSeals, allSeals); errno != 0 {
		return nil, errors.Join(errno, f.Close())
	}
	// It is run through /proc, which a bare container may not have.
	if info, err := os.Stat("/proc/self/fd/" + strconv.Itoa(int(fd))); err != nil || info.Mode().Type() != fs.FileMode(0) {
		return nil, errors.Join(errors.ErrUnsupported, err, f.Close())
	}
	return f, nil
}
