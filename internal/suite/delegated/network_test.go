package delegated_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// step is a kind of request.
type step string

const (
	readItem  step = "read of the item"
	aloneItem step = "write of who is alone"
	roundItem step = "write of who leads"
	leaveItem step = "write of who ends to lead"
	takeBack  step = "taking back"
	postMail  step = "post"
	answerRow step = "answer into a row"
	lookMail  step = "look for mail"
	readRow   step = "read of a row"
)

var steps = []step{readItem, aloneItem, roundItem, leaveItem, takeBack, postMail, answerRow, lookMail, readRow}

// stepOf is what a request of package delegate is.
func stepOf(op string, body []byte) step {
	var in struct {
		Key    map[string]map[string]string
		Names  map[string]string          `json:"ExpressionAttributeNames"`
		Values map[string]json.RawMessage `json:"ExpressionAttributeValues"`
	}
	_ = json.Unmarshal(body, &in)
	mail := strings.HasPrefix(in.Key["shop"]["S"], "dynahold:mail:")
	names := map[string]bool{}
	for _, name := range in.Names {
		names[name] = true
	}
	switch {
	case op == "Query":
		return lookMail
	case op == "GetItem" && mail:
		return readRow
	case op == "GetItem":
		return readItem
	case mail && names["mailItem"]:
		return postMail
	case mail:
		return answerRow
	case !names["writersDelegated"]:
		return aloneItem
	}
	for _, v := range in.Values {
		var evidence struct{ M map[string]json.RawMessage }
		if json.Unmarshal(v, &evidence) != nil || evidence.M["slots"] == nil {
			continue
		}
		switch {
		case strings.Contains(string(v), `{"S":"~"}`) && !names["version"]:
			return takeBack
		case evidence.M["lead"] == nil:
			return leaveItem
		}
		return roundItem
	}
	return aloneItem
}

// accident is what befalls one request.
type accident string

const (
	nothing       accident = "nothing"
	dropped       accident = "dropped"
	lost          accident = "its answer lost"
	throttled     accident = "throttled"
	seenSecond    accident = "copied, the second answer seen"
	seenLater     accident = "copied behind others, the second answer seen"
	copiedLate    accident = "copied late"
	held          accident = "dropped, and arrives late"
	heldAShort    accident = "dropped, and arrives after the next rounds"
	killedBefore  accident = "its process killed before it"
	killedAfter   accident = "its process killed after it"
	stoppedBefore accident = "its process stopped before it"
	stoppedAfter  accident = "its process stopped after it"
)

var accidents = []accident{dropped, lost, throttled, seenSecond, seenLater, copiedLate, held, heldAShort, killedBefore, killedAfter, stoppedBefore, stoppedAfter}

// fatal are accidents after which the process that they befall may know less.
var fatal = []accident{killedBefore, killedAfter, stoppedBefore, stoppedAfter}

const (
	latency = 2 * time.Millisecond // of each way
	soon    = 40 * time.Millisecond
	late    = 100 * time.Second // longer than any lease, and than a mail is carried out
)

// cell is what happens to one request of a run.
type cell struct {
	at   step
	nth  int // from 0, of all processes
	what accident
}

// network is what the requests of all processes of a run pass through.
type network struct {
	cell
	mu    sync.Mutex
	seen  map[step]int // guarded by mu
	hit   *process     // guarded by mu: whose request it was
	under atomic.Int64 // deliveries, and ends of stops
}

// begin runs what ends after whoever has begun it may have gone.
func (n *network) begin(f func()) {
	n.under.Add(1)
	go func() {
		defer n.under.Add(-1)
		f()
	}()
}

// settle waits until nothing is under way any more.
func (n *network) settle() {
	for n.under.Load() > 0 {
		time.Sleep(time.Second)
	}
}

// process is the network of one process.
type process struct {
	all    *network
	copier *fault.Copier
	dead   chan struct{} // closed when it is killed

	mu      sync.Mutex
	stopped chan struct{} // guarded by mu: closed when it goes on; nil: it does not stand still
}

func (n *network) process(next fault.Doer) *process {
	p := &process{all: n, copier: fault.NewCopier(next), dead: make(chan struct{})}
	p.copier.On(p.pass)
	return p
}

var errGone = errors.New("connection reset")

// Do implements the SDK's HTTP client. Who no longer waits has an answer at once; the
// request goes its way.
func (p *process) Do(req *http.Request) (*http.Response, error) {
	body, err := fault.Body(req)
	if err != nil {
		return nil, err
	}
	type answer struct {
		resp *http.Response
		err  error
	}
	got := make(chan answer, 1)
	sent := req.Clone(context.WithoutCancel(req.Context()))
	sent.Body = io.NopCloser(bytes.NewReader(body))
	p.all.begin(func() {
		resp, err := p.copier.Do(sent) //nolint:bodyclose // it is read, and in memory
		got <- answer{resp, err}
	})
	select {
	case a := <-got:
		return a.resp, a.err
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// pass sends one request, and lets happen to it what is to.
func (p *process) pass(one *fault.Copy) (*http.Response, error) {
	n := p.all
	what := n.befalls(p, one)
	if what == killedBefore {
		close(p.dead)
	}
	if what == stoppedBefore {
		p.stop(late)
	}
	if err := p.trip(); err != nil {
		return nil, err
	}
	resp, err := n.deliver(one, what)
	switch what {
	case killedAfter:
		close(p.dead)
	case stoppedAfter:
		p.stop(late)
	}
	if gone := p.trip(); gone != nil {
		return nil, gone
	}
	return resp, err
}

// deliver is what arrives, and what comes back.
func (n *network) deliver(one *fault.Copy, what accident) (*http.Response, error) {
	again := func(after time.Duration) {
		n.begin(func() {
			time.Sleep(after)
			_, _ = one.Deliver() //nolint:bodyclose // it is read, and in memory
		})
	}
	switch what {
	case dropped:
		return nil, errGone
	case held:
		again(late)
		return nil, errGone
	case heldAShort:
		again(soon)
		return nil, errGone
	case throttled:
		return one.Met("ProvisionedThroughputExceededException", 0), nil
	}
	resp, err := one.Deliver()
	switch what {
	case lost:
		return nil, errGone
	case seenSecond:
		return one.Deliver()
	case seenLater:
		time.Sleep(soon)
		return one.Deliver()
	case copiedLate:
		again(late)
	}
	return resp, err
}

// befalls says what becomes of a request.
func (n *network) befalls(p *process, one *fault.Copy) accident {
	s := stepOf(one.Op, one.Body)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen[s]++
	if s != n.at || n.seen[s] != n.nth+1 || n.what == nothing {
		return nothing
	}
	n.hit = p
	return n.what
}

// requests is how many were sent.
func (n *network) requests() (all int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range n.seen {
		all += k
	}
	return all
}

// victim is the process to whose request something has happened.
func (n *network) victim() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hit
}

// stop lets nothing of the process pass for a while, neither way.
func (p *process) stop(by time.Duration) {
	on := make(chan struct{})
	p.mu.Lock()
	p.stopped = on
	p.mu.Unlock()
	p.all.begin(func() {
		time.Sleep(by)
		p.mu.Lock()
		p.stopped = nil
		p.mu.Unlock()
		close(on)
	})
}

// trip is one way.
func (p *process) trip() error {
	time.Sleep(latency)
	p.mu.Lock()
	on := p.stopped
	p.mu.Unlock()
	if on != nil {
		<-on
	}
	if p.isDead() {
		return errGone
	}
	return nil
}

func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

func TestMain(m *testing.M) { rig.Main(m) }
