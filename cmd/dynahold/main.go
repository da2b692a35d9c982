// Command dynahold is the newcomer's and the operator's tool.
//
// Each command is a struct with a method Run in a file of its own, and a field
// of grammar in cli.go. What it needs beyond its flags is in a package below
// internal.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/dynahold/dynahold/internal/load"
)

// main has to leave everything to the harness, which runs compare in virtual
// time. The other commands do not notice.
func main() {
	load.Main(func(h *load.Harness) int {
		ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
		if !signal.Ignored(syscall.SIGHUP) { // by nohup
			ends = append(ends, syscall.SIGHUP)
		}
		ctx, stop := signal.NotifyContext(context.Background(), ends...)
		defer stop()
		context.AfterFunc(ctx, stop) // who asks a second time does not want to wait
		// Nobody listens: so that a closed pipe is an error of the write, and not
		// the end before everything is cleaned up. To ignore the signal would be
		// inherited by the engine.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		return run(ctx, os.Args[1:], newConsole(os.Stdout, os.Stderr), h)
	})
}
