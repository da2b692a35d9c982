//go:build unix

package crew

import (
	"os"
	"os/exec"
	"syscall"
)

// CanPause says that members can be paused and continued.
const CanPause = true

func pause(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// apart gives a process a group of its own: if this program is killed while
// that process is paused, the system ends it, for nobody could let it go on.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
