//go:build !linux

package localdb

import (
	"errors"
	"os"
)

func seal([]byte) (*os.File, error) { return nil, errors.ErrUnsupported }
