package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// crew are the dispatchers' processes and what they say.
type crew struct {
	procs map[string]*exec.Cmd
	heard chan event // closed when all have ended

	mu   sync.Mutex
	ends map[string]string // guarded by mu: how a process ended that did not end well
}

// dispatcherEnv tells a test binary that it is to be the program.
const dispatcherEnv = "DEPLOYMENTS_DISPATCHER"

// start launches the dispatchers with this program's own binary. When ctx ends
// they are asked to end, and finish or give back what they do.
func start(ctx context.Context, s settings, table, endpoint string) (*crew, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &crew{procs: map[string]*exec.Cmd{}, heard: make(chan event, 256), ends: map[string]string{}}
	var running sync.WaitGroup
	for i := range s.dispatchers {
		name := "p" + strconv.Itoa(i+1)
		// the program starts itself
		cmd := exec.CommandContext(ctx, self, "-dispatcher", name, "-table", table, "-lease", s.lease.String())
		if _, err := cmd.StdinPipe(); err != nil { // its end tells a dispatcher that this process is gone
			return nil, err
		}
		apart(cmd)
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL_DYNAMODB="+endpoint, dispatcherEnv+"=1")
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 10 * time.Second // then it is killed
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, fmt.Errorf("starting dispatcher %s: %w", name, err)
		}
		c.procs[name] = cmd
		running.Go(func() {
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				var e event
				if json.Unmarshal(lines.Bytes(), &e) == nil { // who is killed may leave half a line
					c.heard <- e
				}
			}
			if err := cmd.Wait(); err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.ends[name] = strings.TrimSpace(err.Error() + " " + said.String())
				c.mu.Unlock()
			}
		})
	}
	go func() {
		running.Wait()
		close(c.heard)
	}()
	return c, nil
}
