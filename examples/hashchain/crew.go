package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// crew are the worker processes and what they have said.
type crew struct {
	names []string
	procs map[string]*exec.Cmd
	heard chan event // closed when every worker has ended

	mu   sync.Mutex
	errs []error
}

// start launches the workers with this program's own binary.
func start(ctx context.Context, s settings, table, endpoint string) (*crew, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &crew{procs: map[string]*exec.Cmd{}, heard: make(chan event, 64)}
	var running sync.WaitGroup
	for i := range s.workers {
		name := "w" + strconv.Itoa(i+1)
		// the program starts itself
		cmd := exec.CommandContext(ctx, self, "-worker", name, "-table", table, "-links", strconv.Itoa(s.links),
			"-work", s.work.String(), "-lease", s.lease.String())
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL_DYNAMODB="+endpoint, workerEnv+"=1")
		said := &complaint{}
		cmd.Stderr = said
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, fmt.Errorf("starting worker %s: %w", name, err)
		}
		c.names, c.procs[name] = append(c.names, name), cmd
		running.Go(func() {
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				var e event
				// A worker that is killed may leave half a line.
				if json.Unmarshal(lines.Bytes(), &e) == nil {
					c.heard <- e
				}
			}
			if err := cmd.Wait(); err != nil {
				c.mu.Lock()
				c.errs = append(c.errs, errors.Join(fmt.Errorf("worker %s: %w", name, err), said.err()))
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

// workerEnv tells a test binary that it is to be the program.
const workerEnv = "HASHCHAIN_WORKER"

// complaint is what a worker wrote to its standard error.
type complaint struct{ strings.Builder }

func (c *complaint) err() error {
	if text := strings.TrimSpace(c.String()); text != "" {
		return errors.New(text)
	}
	return nil
}
