package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
	"github.com/dynahold/dynahold/repo"
)

// console is where a command talks to. Results go to out, which may be a pipe;
// progress and faults go to err.
type console struct {
	out, err      io.Writer
	in            io.Reader // nil: nobody can be asked
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
	if asks, _ := terminal(os.Stdin); asks && c.errIsTerminal {
		c.in = os.Stdin
	}
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

// confirm shows what a command is about to hit, and asks whoever sits at the terminal. yes
// is the answer that was given on the command line; without it and without a terminal
// nobody can agree.
func (c *console) confirm(ctx context.Context, yes bool, facts [][2]string, question string) error {
	if _, err := io.WriteString(c.err, factsText(facts)); err != nil { // the output is the result
		return err
	}
	switch {
	case yes:
		return nil
	case c.in == nil:
		return usage("nobody can be asked here: say --yes")
	}
	fmt.Fprintf(c.err, "%s [y/N] ", question)
	answered := make(chan string, 1)
	go func() { // a read from a terminal does not end with ctx
		line, _ := bufio.NewReader(c.in).ReadString('\n')
		answered <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errors.New("not agreed to: nothing was changed")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forced is a change of what others hold or wait for.
type forced struct {
	facts      [][2]string // whom it hits
	question   string
	act        func() error
	gone       string // what has happened where it is not there any more
	done, name string
	document   any
}

// force makes such a change, with consent.
func (c *console) force(ctx context.Context, yes bool, output string, f forced) error {
	if err := c.confirm(ctx, yes, f.facts, f.question); err != nil {
		return err
	}
	err := f.act()
	switch {
	case errors.Is(err, repo.ErrNotHeld), errors.Is(err, repo.ErrNotFound), errors.Is(err, repo.ErrLocked):
		return outcome{exitMoved, fmt.Errorf("%s; nothing was changed: %w", f.gone, err)}
	case err != nil:
		return err
	}
	return c.printDone(output, f.done, f.name, f.document)
}

// printDone reports what was done, to one thing. It is done also where that cannot be
// told.
func (c *console) printDone(output, what, name string, document any) (err error) {
	if output == "json" {
		err = c.printJSON(map[string]any{what: document})
	} else {
		_, err = fmt.Fprintf(c.out, "%s: %s\n", what, shown.Text(name))
	}
	if err != nil {
		return doneBut(what, name, "this could not be printed", err)
	}
	return nil
}

// doneBut is what is told of a change that was made, where something after it failed.
func doneBut(what, name, failed string, err error) error {
	return outcome{exitFailed, fmt.Errorf("%s: %s; but %s: %w", what, name, failed, err)}
}

// fail reports an error and returns the exit code.
func (c *console) fail(err error, code int) int {
	fmt.Fprintf(c.err, "dynahold: %s\n", shown.Lines(err.Error()))
	return code
}
