package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Verdicts of calls.
const (
	Done    = "done"
	Refused = "refused" // not written
	Unknown = "unknown"
)

// Answers to writes.
const (
	Applied = "applied"
	Failed  = "refused" // a condition was not met
	None    = "none"    // an error, or no answer
)

// Call is one call, as a line of the record.
type Call struct {
	Call    string    `json:"call"` // such as optimistic.Update
	Table   string    `json:"table,omitempty"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Verdict string    `json:"verdict"`
	Error   string    `json:"error,omitempty"`
	Writes  []Write   `json:"writes"`
}

// Write is a request's write of one item.
type Write struct {
	Table  string `json:"table"`
	Key    string `json:"key"`            // KeyHash
	Name   string `json:"name,omitempty"` // the key itself, with Config.Keys
	ID     string `json:"id"`             // that stands on the item if it was applied, in hexadecimal digits
	Answer string `json:"answer"`
}

// Config are the settings of a record. The zero value works.
type Config struct {
	// Keys writes keys of items down.
	Keys bool
	// Buffer is how many calls may wait to be written. Default 4,096, about 2 MB.
	Buffer int
	// Writers is the library's attribute with the ids of writes, where
	// repo.Attributes renames it. Default "writers".
	Writers string
}

// mostWrites bounds what is kept of one call: one that tries for ever, say.
const mostWrites = 256

// Recorder writes calls down. It is safe for concurrent use.
type Recorder struct {
	cfg     Config
	calls   chan Call
	dropped atomic.Int64
	ended   chan struct{} // closed when all is written
	closing sync.RWMutex
	closed  bool  // guarded by closing
	err     error // of the writer; read after ended
}

// New begins a record, one line a call. Calls that write no item are left out. What w
// returns as an error ends the record, and is that of Close.
func New(w io.Writer, cfg Config) *Recorder {
	if cfg.Buffer <= 0 {
		cfg.Buffer = 4096
	}
	if cfg.Writers == "" {
		cfg.Writers = "writers"
	}
	r := &Recorder{cfg: cfg, calls: make(chan Call, cfg.Buffer), ended: make(chan struct{})}
	go r.write(json.NewEncoder(w))
	return r
}

// write is the only one that writes.
func (r *Recorder) write(to *json.Encoder) {
	defer close(r.ended)
	for call := range r.calls {
		if r.err != nil {
			continue // nobody must wait, whatever has become of the writer
		}
		if r.err = r.tellDropped(to); r.err == nil {
			r.err = to.Encode(call)
		}
	}
	if r.err == nil {
		r.err = r.tellDropped(to)
	}
}

func (r *Recorder) tellDropped(to *json.Encoder) error {
	n := r.dropped.Swap(0)
	if n == 0 {
		return nil
	}
	return to.Encode(map[string]int64{"dropped": n})
}

// add hands a call to the writer, or leaves it out.
func (r *Recorder) add(c Call) {
	r.closing.RLock()
	defer r.closing.RUnlock()
	if r.closed {
		return
	}
	select {
	case r.calls <- c:
	default:
		r.dropped.Add(1)
	}
}

// Close writes what waits, and ends the record. Calls that end later are not in it. The
// second Close is an error.
func (r *Recorder) Close() error {
	r.closing.Lock()
	again := r.closed
	if !again {
		r.closed = true
		close(r.calls)
	}
	r.closing.Unlock()
	if again {
		return errors.New("history: the record is closed")
	}
	<-r.ended
	if r.err != nil {
		return fmt.Errorf("history: the record ends early: %w", r.err)
	}
	return nil
}
