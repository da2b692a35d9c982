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
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // who asks a second time does not want to wait
		return run(ctx, os.Args[1:], newConsole(os.Stdout, os.Stderr), h)
	})
}
