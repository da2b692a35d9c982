package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// crew are the candidates' processes and what they say.
type crew struct {
	procs map[string]*exec.Cmd
	heard chan event // closed when all have ended

	mu   sync.Mutex
	ends map[string]string // guarded by mu: how a process ended that did not end well
}

// candidateEnv tells a test binary that it is to be the program.
const candidateEnv = "LEADER_CANDIDATE"

// start launches the candidates with this program's own binary; they end with
// ctx.
func start(ctx context.Context, s settings, table, endpoint string) (*crew, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &crew{procs: map[string]*exec.Cmd{}, heard: make(chan event, 64), ends: map[string]string{}}
	var running sync.WaitGroup
	for i := range s.candidates {
		name := "c" + strconv.Itoa(i+1)
		// the program starts itself
		cmd := exec.CommandContext(ctx, self, "-candidate", name, "-table", table, "-lease", s.lease.String())
		if _, err := cmd.StdinPipe(); err != nil { // its end tells a candidate that this process is gone
			return nil, err
		}
		apart(cmd)
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL_DYNAMODB="+endpoint, candidateEnv+"=1")
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, fmt.Errorf("starting candidate %s: %w", name, err)
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
			if err := cmd.Wait(); err != nil {
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

// ended says how processes ended that did not end well.
func (c *crew) ended() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.ends)
}
