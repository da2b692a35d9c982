//go:build !unix

package costs_test

import (
	"testing"
	"time"
)

var started = time.Now()

// processorTime is the time that has passed, where the system does not say what a
// process has used: the ratio then needs an idle machine.
func processorTime(testing.TB) time.Duration { return time.Since(started) }
