package localdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

const (
	// The engine is up in milliseconds. Whoever needs this long hangs.
	startLimit = 15 * time.Second

	// An engine that leaves at once found its port taken by somebody who was
	// quicker, or its file busy: a process that forked while the file was
	// written, or its data locked, holds it open until it has called exec. Both pass.
	startAttempts = 8
	firstPause    = 5 * time.Millisecond // doubled from attempt to attempt
)

// A process is a running engine, or the npm that fetches one, which belongs to this process.
type process struct {
	endpoint string
	cmd      *exec.Cmd
	output   *output

	// leash is the writing end of the pipe that the engine's watcher reads.
	// It is never written to. While it is open the watcher lives, hence the
	// process group exists and its number cannot belong to anybody else;
	// ending guards that it is closed only after the group was killed.
	leash  *os.File
	ending sync.Once

	discard func() // removes what it was run from, and gives up its data; may be nil

	exited chan struct{} // closed when the engine is gone and its output read
	err    error         // how it ended; written before exited is closed
}

// launch starts the engine on a free port and waits until it answers.
func launch(ctx context.Context, engine program, path string, logger *slog.Logger) (*process, error) {
	path, err := keepPrivate(path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errors.New("the engine does not get ready"))
	defer cancel()
	var last error
	for attempt := range startAttempts {
		if attempt > 0 {
			select {
			case <-time.After(firstPause << (attempt - 1)):
			case <-ctx.Done():
				return nil, errors.Join(fmt.Errorf("localdb: starting %s: %w", engine.path, context.Cause(ctx)), last)
			}
		}
		p, err := launchOnce(ctx, engine, path, logger)
		if err == nil {
			logger.DebugContext(ctx, "engine started", "endpoint", p.endpoint, "binary", engine.path)
			return p, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		last = err
	}
	return nil, last
}

// launchOnce tries one port.
func launchOnce(ctx context.Context, engine program, path string, logger *slog.Logger) (_ *process, err error) {
	release, err := claim(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	endpoint := "http://" + net.JoinHostPort(loopbackHost, strconv.Itoa(port))
	args := []string{"--host", loopbackHost, "--port", strconv.Itoa(port)}
	if path != "" {
		args = append(args, "--db-path", path)
	}
	cmd, discard, err := engine.command(args...)
	if err != nil {
		return nil, err
	}
	defer discard()
	p := &process{
		endpoint: endpoint,
		cmd:      cmd,
		discard:  func() { discard(); release() },
		output:   newOutput(endpoint, logger),
		exited:   make(chan struct{}),
	}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	// Should something else have inherited the output, Wait ends regardless.
	p.cmd.WaitDelay = 2 * time.Second
	if err := p.start(); err != nil {
		return nil, fmt.Errorf("localdb: starting %s: %w", engine.path, err)
	}

	// The line on its own output proves that it is this engine that listens.
	// That the port answers would not: it may be another's.
	select {
	case <-p.output.listening:
		return p, nil
	case <-p.exited:
		return nil, fmt.Errorf("localdb: %s ended before it listened: %s", engine.path, p.ended())
	case <-ctx.Done():
		p.stop()
		return nil, fmt.Errorf("localdb: starting %s: %w: %s", engine.path, context.Cause(ctx), p.output.tail())
	}
}

// start runs the command on its leash, and the goroutine that waits for it.
func (p *process) start() error {
	// Not cmd.StdinPipe: Wait would close that, before the group is killed.
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	p.leash, p.cmd.Stdin = writer, reader
	err = p.cmd.Start()
	_ = reader.Close() // the child has its own
	if err != nil {
		_ = writer.Close()
		return err
	}
	go func() {
		defer close(p.exited)
		p.err = p.cmd.Wait() // of an engine it says nothing that its output does not
		p.end()
		if p.discard != nil {
			p.discard()
		}
	}()
	return nil
}

// wait waits for the end, which it brings about when ctx ends, and returns how it was.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return p.err
	case <-ctx.Done():
		p.stop()
		return context.Cause(ctx)
	}
}

// died says how an engine has ended, if nobody has ended it. Its callers have seen refused
// connections.
func (p *process) died() error {
	select {
	case <-p.exited:
		return fmt.Errorf("localdb: the engine at %s ended by itself: %s", p.endpoint, p.ended())
	default:
		return nil
	}
}

// ended is how an engine that is gone has ended, and its last words.
func (p *process) ended() string { return fmt.Sprintf("%s: %s", p.cmd.ProcessState, p.output.tail()) }

// stop ends the engine and returns when it is gone.
func (p *process) stop() {
	p.end()
	<-p.exited
}

func (p *process) end() {
	p.ending.Do(func() {
		kill(p.cmd.Process)
		_ = p.leash.Close()
	})
}

const loopbackHost = "127.0.0.1"

// claim keeps other engines from a file of data, until release, or the end of this process:
// that conditions and transactions of two of them hold nobody promises. The lock is on a file
// beside it: on some systems it would count as one of SQLite's own.
func claim(path string) (release func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.OpenFile(path+lockEnd, os.O_RDWR|os.O_CREATE|openFlags, 0o600)
	if err == nil {
		if err = exclude(f); err == nil {
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close()
	}
	return nil, fmt.Errorf("localdb: Config.Path: %s is another engine's: %w", path, err)
}

// freePort returns a port that was free a moment ago. The engine cannot choose
// one itself.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(loopbackHost, "0"))
	if err != nil {
		return 0, fmt.Errorf("localdb: no free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("localdb: no free port: %w", err)
	}
	return port, nil
}
