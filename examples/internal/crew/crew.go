// Package crew is the part that examples of real processes have in common: a
// program starts itself several times, hears what these members say, and pauses
// or kills them. It knows nothing of locks, so that each example shows its own.
//
// A member is the same program with other flags. It says its events with [Say],
// and ends when the context of [WithParent] does.
package crew

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config says which members a program starts.
type Config struct {
	Prefix   string                     // of their names: the first of prefix "w" is w1
	Size     int                        // how many
	Args     func(name string) []string // the flags that make the program this member
	Env      func(name string) []string // of its environment, what is not this program's; nil: nothing
	Endpoint string                     // of the engine that all use
	Grace    time.Duration              // to end by themselves when ctx ends; zero: they are killed
}

// Crew are running members, which say events of type E.
type Crew[E any] struct {
	Names []string
	Heard <-chan E // what members say; closed when all have ended

	procs map[string]*os.Process
	mu    sync.Mutex
	errs  []error // guarded by mu
}

// Start launches the members with this program's own binary. They end with ctx.
func Start[E any](ctx context.Context, cfg Config) (*Crew[E], error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	heard := make(chan E, 256)
	c := &Crew[E]{Heard: heard, procs: map[string]*os.Process{}}
	var running sync.WaitGroup
	for i := range cfg.Size {
		name := cfg.Prefix + strconv.Itoa(i+1)
		cmd := exec.CommandContext(ctx, self, cfg.Args(name)...) // the program starts itself
		if _, err := cmd.StdinPipe(); err != nil {               // its end tells a member that this process is gone
			return nil, err
		}
		apart(cmd)
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL_DYNAMODB="+cfg.Endpoint, memberEnv+"=1")
		if cfg.Env != nil {
			cmd.Env = append(cmd.Env, cfg.Env(name)...)
		}
		if cfg.Grace > 0 {
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
			cmd.WaitDelay = cfg.Grace // then it is killed
		}
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", name, err)
		}
		c.Names, c.procs[name] = append(c.Names, name), cmd.Process
		running.Go(func() {
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				var e E
				if json.Unmarshal(lines.Bytes(), &e) == nil { // who is killed may leave half a line
					heard <- e
				}
			}
			if err := cmd.Wait(); err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.errs = append(c.errs, errors.New(strings.TrimSpace(name+": "+err.Error()+" "+said.String())))
				c.mu.Unlock()
			}
		})
	}
	go func() {
		running.Wait()
		close(heard)
	}()
	return c, nil
}

// Pause stops a member where it is, until Resume. It fails where not CanPause.
func (c *Crew[E]) Pause(name string) error { return pause(c.procs[name]) }

// Resume lets a paused member go on.
func (c *Crew[E]) Resume(name string) error { return resume(c.procs[name]) }

// Kill ends a member at once. It fails if the member has ended by itself.
func (c *Crew[E]) Kill(name string) error { return c.procs[name].Kill() }

// Errs tells which members ended with an error before the context of Start did,
// and what they wrote to their standard error. Who was killed is among them.
func (c *Crew[E]) Errs() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.errs)
}
