package rig

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/bridge"
	"github.com/dynahold/dynahold/internal/fault"
)

// InVirtualTime runs a test in virtual time, on the real engine, which at most lines
// requests reach at once.
func InVirtualTime(t *testing.T, lines int, run func(t *testing.T, network fault.Doer)) {
	var doer fault.Doer
	Client(func(o *dynamodb.Options) { doer = o.HTTPClient })
	overBridge(t, doer, lines, run)
}

// InVirtualTime is InVirtualTime with requests that pass through the rig's net.
func (r *Rig) InVirtualTime(t *testing.T, lines int, run func(t *testing.T, network fault.Doer)) {
	overBridge(t, r.Net, lines, run)
}

func overBridge(t *testing.T, doer fault.Doer, lines int, run func(t *testing.T, network fault.Doer)) {
	b := bridge.New(doer, lines)
	defer b.Close()
	synctest.Test(t, func(t *testing.T) { run(t, b) })
}

// Mortal is the network of a process in virtual time that can be killed: from
// then on nothing of what it sends arrives, and no answer reaches it.
type Mortal struct {
	Next    fault.Doer
	Latency time.Duration // of each way
	Dead    atomic.Bool
	// Lost, if set, tells which requests are answered by silence: before or after
	// they have arrived.
	Lost func(op, body string) (before, after bool)
}

var errDead = errors.New("this process is dead")

// Do implements the SDK's HTTP client.
func (m *Mortal) Do(req *http.Request) (*http.Response, error) {
	var before, after bool
	if m.Lost != nil {
		body, err := fault.Body(req)
		if err != nil {
			return nil, err
		}
		before, after = m.Lost(fault.Operation(req), string(body))
	}
	time.Sleep(m.Latency)
	if m.Dead.Load() {
		return nil, errDead
	}
	if before {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	resp, err := m.Next.Do(req)
	if after {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	time.Sleep(m.Latency)
	if m.Dead.Load() {
		return nil, errDead
	}
	return resp, err
}
