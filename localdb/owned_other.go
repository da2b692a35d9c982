//go:build !unix

package localdb

import (
	"io/fs"
	"os"
)

// owned knows no owners here: the default folder is in the user's profile, which the system guards.
func owned(fs.FileInfo) error { return nil }

func ours(fs.FileInfo) error { return nil }

// guarded knows no others here.
func guarded(string) error { return nil }

// exclude knows no locks here.
func exclude(*os.File) error { return nil }

const openFlags = os.O_RDONLY
