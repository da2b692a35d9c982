package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// host is the part of Lambda's runtime API that functions speak: they ask for their
// next event, and post what came of it.
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
//
// Each function has an address of its own, which ends in its name.
type host struct {
	queue *queue
	// Lambda freezes a function that waits for its next event, and thaws it when there
	// is one.
	freeze, thaw func(function string)
	// handed is told of every event before it is sent, and says how long the call may
	// take; answered of every answer before it is taken.
	handed   func(c call) time.Duration
	answered func(c call)

	mu    sync.Mutex
	calls map[string]call // guarded by mu: those under way, by request id
	made  int             // guarded by mu
	dead  map[string]bool // guarded by mu: functions that were killed
}

// call is an event that a function works on.
type call struct {
	function, request string
	delivery
}

const (
	apiPath = "/{function}/2018-06-01/runtime"
	timeout = 10 * time.Second // the template's
)

func (h *host) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+apiPath+"/invocation/next", h.next)
	mux.HandleFunc("POST "+apiPath+"/invocation/{request}/response", func(w http.ResponseWriter, r *http.Request) {
		var response events.SQSEventResponse
		if err := json.NewDecoder(r.Body).Decode(&response); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		h.settle(w, r, func(id string) bool {
			return slices.Contains(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
		})
	})
	mux.HandleFunc("POST "+apiPath+"/invocation/{request}/error", func(w http.ResponseWriter, r *http.Request) {
		h.settle(w, r, everything)
	})
	return mux
}

// next gives a function its next event.
func (h *host) next(w http.ResponseWriter, r *http.Request) {
	function := r.PathValue("function")
	h.freeze(function)
	var d delivery
	select {
	case d = <-h.queue.ready:
	case <-r.Context().Done(): // the function is gone
		return
	}
	c, ok := h.begin(function, d)
	if !ok {
		return
	}
	end := time.Now().Add(h.handed(c))
	h.thaw(function)
	w.Header().Set("Lambda-Runtime-Aws-Request-Id", c.request)
	w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(end.UnixMilli(), 10))
	_ = json.NewEncoder(w).Encode(events.SQSEvent{Records: c.records}) // a function that is gone hears nothing
}

// begin notes that a function works on a delivery, unless it was killed: then it comes
// again.
func (h *host) begin(function string, d delivery) (c call, ok bool) {
	h.mu.Lock()
	ok = !h.dead[function]
	if ok {
		h.made++
		c = call{function, fmt.Sprintf("request-%d", h.made), d}
		h.calls[c.request] = c
	}
	h.mu.Unlock()
	if !ok {
		h.queue.settle(d, everything)
	}
	return c, ok
}

// bury notes that a function was killed. What it worked on comes again.
func (h *host) bury(function string) {
	h.mu.Lock()
	h.dead[function] = true
	var lost []string
	for request, c := range h.calls {
		if c.function == function {
			lost = append(lost, request)
		}
	}
	h.mu.Unlock()
	for _, request := range lost {
		h.end(request, everything)
	}
}

// settle takes the answer to a call, unless the function was killed meanwhile: then
// its batch comes again already.
func (h *host) settle(w http.ResponseWriter, r *http.Request, failed func(id string) bool) {
	h.mu.Lock()
	c, ok := h.calls[r.PathValue("request")]
	h.mu.Unlock()
	if ok {
		h.answered(c)
		ok = h.end(c.request, failed)
	}
	if !ok {
		http.Error(w, "no such call", http.StatusGone)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// end settles a call, unless that was done.
func (h *host) end(request string, failed func(id string) bool) bool {
	h.mu.Lock()
	c, ok := h.calls[request]
	delete(h.calls, request)
	h.mu.Unlock()
	if ok {
		h.queue.settle(c.delivery, failed)
	}
	return ok
}
