package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// console is where a command talks to. Results go to out, which may be a pipe;
// progress and faults go to err.
type console struct {
	out, err      io.Writer
	outIsTerminal bool
	errIsTerminal bool
	width         int // of lines on out
}

const (
	plainWidth  = 100 // of text in a pipe or a file
	widestLines = 120 // longer ones are hard to read
)

func newConsole(out, err *os.File) *console {
	c := &console{out: out, err: err, width: plainWidth}
	if os.Getenv("TERM") == "dumb" {
		return c
	}
	c.outIsTerminal, c.width = terminal(out)
	c.errIsTerminal, _ = terminal(err)
	return c
}

func terminal(f *os.File) (is bool, width int) {
	fd := int(f.Fd()) // a file descriptor fits
	if !term.IsTerminal(fd) {
		return false, plainWidth
	}
	width, _, err := term.GetSize(fd)
	if err != nil || width <= 0 {
		return true, plainWidth
	}
	return true, min(width, widestLines)
}

// fail reports an error and returns the exit code.
func (c *console) fail(err error, code int) int {
	fmt.Fprintf(c.err, "dynahold: %v\n", err)
	return code
}
