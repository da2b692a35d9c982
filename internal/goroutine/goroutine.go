// Package goroutine tells goroutines apart, and what ends one from what waits for it.
package goroutine

import (
	"bytes"
	"errors"
	"runtime"
	"strconv"
)

// Number is the number of the present one, as its stack's first line has it; 0 if it
// is not there. Some microseconds; a call inside a change that uses another context than
// the change's would wait for itself without it.
func Number() int64 {
	var line [32]byte
	text := line[:runtime.Stack(line[:], false)]
	number, _, _ := bytes.Cut(bytes.TrimPrefix(text, []byte("goroutine ")), []byte(" "))
	n, _ := strconv.ParseInt(string(number), 10, 64)
	return n
}

// ErrEnded says that what was called has ended its goroutine, as a test does by FailNow.
var ErrEnded = errors.New("it has ended its goroutine")

// Apart runs what calls functions of the program in a goroutine of its own, where others wait
// for what comes behind it: ErrEnded if such a function has ended that. A panic is not caught.
func Apart(do func()) error {
	over, err := make(chan struct{}), ErrEnded
	go func() {
		defer close(over)
		do()
		err = nil
	}()
	<-over
	return err
}
