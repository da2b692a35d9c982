// Package report is what examples say of their tables when all is done. It knows nothing of
// what is in them.
package report

import (
	"fmt"
	"io"
)

// A Check is one statement about the tables: how many things it looked at, and which of
// them it found wrong.
type Check struct {
	Name   string
	Looked int
	Faults []string
}

// Want notes a fault unless something is as it must be.
func (c *Check) Want(ok bool, format string, args ...any) {
	if !ok {
		c.Faults = append(c.Faults, fmt.Sprintf(format, args...))
	}
}

// shown is how many faults of a check are told.
const shown = 5

// Write writes what the checks have found; the error says how much is wrong.
func Write(out io.Writer, checks []Check) error {
	wrong := 0
	for _, c := range checks {
		if len(c.Faults) == 0 {
			fmt.Fprintf(out, "  ok     %s (%d)\n", c.Name, c.Looked)
		}
		for i, f := range c.Faults {
			if i == shown {
				fmt.Fprintf(out, "  ... and %d more\n", len(c.Faults)-i)
				break
			}
			fmt.Fprintf(out, "  WRONG  %s: %s\n", c.Name, f)
		}
		wrong += len(c.Faults)
	}
	if wrong > 0 {
		return fmt.Errorf("%d things are wrong", wrong)
	}
	return nil
}
