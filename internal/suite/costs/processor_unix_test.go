//go:build unix

package costs_test

import (
	"syscall"
	"testing"
	"time"
)

// processorTime is what this process has used of all processors.
func processorTime(tb testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
