package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/internal/load"
)

// programVariable makes the test binary the program.
const programVariable = "DYNAHOLD_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is the whole tool as a process, its output piped.
func program(ctx context.Context, args ...string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	cmd = exec.CommandContext(ctx, os.Args[0], args...) // this test binary
	cmd.Env = append(os.Environ(), programVariable+"=1")
	out, errs = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, errs
	return cmd, out, errs
}

// exitCode of a process that has ended.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

// fake answers at once, like a harness in which all modes are alike, but for
// what change makes of it.
type fake struct {
	change func(*load.Result)
	err    error
	mu     sync.Mutex // worlds are measured at once
	asked  []load.Workload
	real   bool
}

func (f *fake) Run(ctx context.Context, w load.Workload, c load.Contender, o load.Options) (load.Result, error) {
	if err := errors.Join(f.err, ctx.Err()); err != nil {
		return load.Result{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, w)
	f.real = !o.Virtual
	r := load.Result{
		Contender: c.Name, Workload: w, Measured: w.Span, Changes: 100, Turns: 20, Rate: 100 / w.Span.Seconds(), Requests: 2,
		Writes: 1, WriteUnits: 1, ReadUnits: 1, P50: w.Latency.Median, P99: w.Latency.P99, Jain: 1,
	}
	if f.change != nil {
		f.change(&r)
	}
	return r, nil
}

// call is run on a console that is no terminal.
func call(ctx context.Context, f *fake, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(ctx, args, &console{out: &o, err: &e, width: plainWidth}, f)
	return code, o.String(), e.String()
}
