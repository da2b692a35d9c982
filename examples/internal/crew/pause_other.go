//go:build !unix

package crew

import (
	"errors"
	"os"
	"os/exec"
)

// CanPause says that members can be paused and continued.
const CanPause = false

func pause(*os.Process) error  { return errors.ErrUnsupported }
func resume(*os.Process) error { return errors.ErrUnsupported }

func apart(*exec.Cmd) {}
