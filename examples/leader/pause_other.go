//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
)

// canPause says that processes can be stopped and continued.
const canPause = false

func pause(*os.Process) error  { return errors.ErrUnsupported }
func resume(*os.Process) error { return errors.ErrUnsupported }

func apart(*exec.Cmd) {}
