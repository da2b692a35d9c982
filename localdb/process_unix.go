//go:build unix

package localdb

import (
	"os"
	"os/exec"
	"syscall"
)

// leashScript ties the engine to its owner, see the package documentation.
// Prctl with PR_SET_PDEATHSIG was rejected: it is Linux only, and it fires
// when the thread that started the engine ends, not the process.
//
// Shells give a background command /dev/null as standard input, hence the
// detour over descriptor 4; 3 is the engine's own file, where it is run from one.
// What the engine writes is its user's alone, hence the umask. The watcher's output is closed off, so that the
// owner sees the end of the engine's output when the engine ends. The engine
// takes the shell's place and thereby its process id, which is also that of
// the group. A watcher that outlives the engine still belongs to the group,
// so that the number it kills cannot have become somebody else's. The signal is
// spelled -s KILL, because dash takes no -- after -9 and then kills nothing.
const leashScript = `
umask 077
exec 4<&0 </dev/null
(exec 3<&-; read -r line <&4; kill -s KILL -- "-$$") >/dev/null 2>&1 &
exec 4<&-
exec "$@"
`

// command runs a program by its path, or, if it is given, the very file that is open here.
func command(binary string, file *os.File, args ...string) *exec.Cmd {
	if file != nil {
		binary = "/proc/self/fd/3" // the first of ExtraFiles
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", leashScript, "localdb", binary}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
	}
	return cmd
}

// kill ends the whole group: the engine, which may be a launcher with the real
// one as its child, and the watcher.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
