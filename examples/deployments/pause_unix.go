//go:build unix

package main

import (
	"os"
	"syscall"
)

// canPause says that processes can be stopped and continued.
const canPause = true

func pause(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
