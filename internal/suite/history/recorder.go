package history

import (
	"fmt"
	"sync"

	"github.com/anishathalye/porcupine"
)

// Recorder takes down the operations on one item, which is absent at first. It
// is safe for concurrent use.
//
// Its clock is the order of calls and returns, not the time of day: two events
// never fall together, and nothing depends on a clock that may be virtual. Keep
// to ten clients or so at a time: the check's effort grows steeply with them,
// gently with the length of the history.
type Recorder struct {
	mu    sync.Mutex
	clock int64       // guarded by mu
	ops   []operation // guarded by mu
	open  int         // guarded by mu: begun and not ended
}

type operation struct {
	client           int
	kind             Kind
	result           Result
	called, returned int64 // returned is 0 until then
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder { return &Recorder{} }

// Begin notes that a client, counted from 0, is about to call an operation. The
// function that it returns notes the result; call it once, directly after the
// operation returned. A client that dies before that has ended with Unknown.
func (r *Recorder) Begin(client int, kind Kind) (done func(Result)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	r.open++
	i := len(r.ops)
	r.ops = append(r.ops, operation{client: client, kind: kind, called: r.clock})
	return func(result Result) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ops[i].returned != 0 {
			panic(fmt.Sprintf("history: %v of client %d ended twice", kind, client))
		}
		r.clock++
		r.open--
		r.ops[i].returned, r.ops[i].result = r.clock, result
	}
}

// Len is the number of operations so far.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ops)
}

// operations is the history as porcupine wants it. Operations that say nothing
// are left out: those refused, and reads without an answer. open is the number
// of those that have not ended.
func (r *Recorder) operations() (ops []porcupine.Operation, open int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clients, unknown := 0, 0
	for _, o := range r.ops {
		clients = max(clients, o.client+1)
	}
	for _, o := range r.ops {
		silent := o.result.Verdict == Refused || o.kind == Get && o.result.Verdict == Unknown
		if o.returned == 0 || silent {
			continue
		}
		op := porcupine.Operation{ClientId: o.client, Input: o.kind, Output: o.result, Call: o.called, Return: o.returned,
			Metadata: fmt.Sprintf("client %d", o.client)}
		if o.result.Verdict == Unknown {
			// It never returns, and its client goes on: as in other checkers
			// of histories, it becomes a client of its own.
			unknown++
			op.ClientId, op.Return = clients+unknown, r.clock+3
		}
		ops = append(ops, op)
	}
	if unknown > 0 {
		ops = append(ops, porcupine.Operation{ClientId: clients, Input: end, Output: Result{Verdict: OK}, Call: r.clock + 1, Return: r.clock + 2})
	}
	return ops, r.open
}
