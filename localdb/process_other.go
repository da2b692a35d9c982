//go:build !unix

package localdb

import (
	"os"
	"os/exec"
)

// command starts the engine plainly: without a shell and process groups there
// is no watcher, and only Close ends it.
func command(binary string, _ *os.File, args ...string) *exec.Cmd {
	return exec.Command(binary, args...)
}

func kill(p *os.Process) { _ = p.Kill() }
