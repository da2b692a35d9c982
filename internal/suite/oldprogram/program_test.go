package oldprogram_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// earlier is the state of the files that the program is built from: the last in which
// package semaphore had permits and jobs alike.
const earlier = "c5ba07ac2cac9ccfd9911d6a991fc16a4b2571fc"

// build builds the program in a folder, from the history of this clone.
func build(dir string) (program string, err error) {
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", fmt.Errorf("this test needs git, and a clone: %w", err)
	}
	archive := filepath.Join(dir, "files.tar")
	if _, err := output(strings.TrimSpace(root), "git", "archive", "--output", archive, earlier); err != nil {
		return "", fmt.Errorf("this test builds a program from commit %s, which a shallow clone has not: get it by `git fetch --unshallow`: %w", earlier, err)
	}
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		return "", err
	}
	if _, err := output(files, "tar", "-xf", archive); err != nil {
		return "", err
	}
	text, err := os.ReadFile("testdata/program.go.txt")
	if err != nil {
		return "", err
	}
	program = filepath.Join(files, "program")
	if err := errors.Join(os.Mkdir(program, 0o755), os.WriteFile(filepath.Join(program, "main.go"), text, 0o644)); err != nil {
		return "", err
	}
	built := filepath.Join(dir, "old")
	_, err = output(files, "go", "build", "-o", built, "./program")
	return built, err
}

// output runs a command outside of this workspace.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// old is a process of the earlier state.
type old struct {
	*testing.T
	in  io.WriteCloser
	out *bufio.Scanner
}

func startOld(t *testing.T, program, table string) *old {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, rig.Endpoint(), table)
	cmd.Stderr = os.Stderr
	in := rig.Must(cmd.StdinPipe())(t)
	out := rig.Must(cmd.StdoutPipe())(t)
	rig.Is(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return &old{t, in, bufio.NewScanner(out)}
}

// begin sends a command, whose answer is read by said.
func (o *old) begin(command string, args ...any) {
	o.Helper()
	if _, err := fmt.Fprintf(o.in, command+"\n", args...); err != nil {
		o.Fatal(err)
	}
}

func (o *old) said() []string {
	o.Helper()
	if !o.out.Scan() {
		o.Fatalf("the old program has ended: %v", o.out.Err())
	}
	return strings.Fields(o.out.Text())
}

// does sends a command and returns its answer.
func (o *old) does(command string, args ...any) []string {
	o.Helper()
	o.begin(command, args...)
	return o.said()
}

// must is does, of a command that answers so.
func (o *old) must(want, command string, args ...any) {
	o.Helper()
	if said := o.does(command, args...); !slices.Equal(said, []string{want}) {
		o.Errorf("the old program says %q to %q, want %q", said, fmt.Sprintf(command, args...), want)
	}
}
