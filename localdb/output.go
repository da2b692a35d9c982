package localdb

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// output receives what the engine prints: it notices the line that announces
// the endpoint, keeps the last lines for an error message, and hands all to
// the logger. It never blocks, so that the engine never waits for a reader.
type output struct {
	announcement string
	listening    chan struct{} // closed when the announcement was seen
	logger       *slog.Logger

	mu      sync.Mutex
	partial []byte   // guarded by mu: the line that is not complete yet
	last    []string // guarded by mu: the last lines
	seen    bool     // guarded by mu: listening is closed
}

const (
	keptLines = 8
	maxLine   = 4 << 10 // longer lines are cut in pieces
)

func newOutput(endpoint string, logger *slog.Logger) *output {
	return &output{
		announcement: "listening on " + endpoint,
		listening:    make(chan struct{}),
		logger:       logger,
	}
}

// Write takes the next piece of output. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial = append(o.partial, p...)
	for {
		end := bytes.IndexByte(o.partial, '\n')
		next := end + 1
		if end < 0 {
			if len(o.partial) < maxLine {
				return len(p), nil
			}
			end, next = maxLine, maxLine
		}
		o.line(strings.TrimSpace(string(o.partial[:end])))
		o.partial = o.partial[next:]
	}
}

// line handles one line. The caller holds mu.
func (o *output) line(text string) {
	if text == "" {
		return
	}
	o.logger.Debug("engine", "line", text)
	if o.last = append(o.last, text); len(o.last) > keptLines {
		o.last = o.last[1:]
	}
	// Compared to the end of the line: port 1234 is not port 12345.
	if !o.seen && strings.HasSuffix(text, o.announcement) {
		o.seen = true
		close(o.listening)
	}
}

// tail returns the last lines in one.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := o.last
	if rest := strings.TrimSpace(string(o.partial)); rest != "" {
		lines = append(lines[:len(lines):len(lines)], rest)
	}
	if len(lines) == 0 {
		return "no output"
	}
	return strings.Join(lines, " | ")
}
