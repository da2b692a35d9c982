package semaphore_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/semaphore"
)

// process is one with a network of its own, in virtual time.
type process struct {
	bench
	net  *rig.Mortal
	s    *sem
	sent atomic.Int64
	rule atomic.Pointer[func(body string) (before, after bool)]
}

// besideAnother runs a test on two processes in virtual time.
func besideAnother(t *testing.T, cfg semaphore.Config, test func(t *testing.T, p, other *process)) {
	t.Helper()
	b := newBench(t)
	rig.InVirtualTime(t, 32, func(t *testing.T, network fault.Doer) {
		open := func() *process {
			p := &process{net: &rig.Mortal{Next: network, Latency: 2 * time.Millisecond}}
			p.net.Lost = p.befalls
			p.bench = bench{&rig.Rig{Table: b.Table, Client: rig.Client(func(o *dynamodb.Options) { o.HTTPClient = p.net })}}
			p.s = p.open(t, cfg)
			return p
		}
		p, other := open(), open()
		defer func() {
			_ = p.s.Close(context.Background())
			_ = other.s.Close(context.Background())
			synctest.Wait()
		}()
		test(t, p, other)
	})
}

// lose counts requests from now on; rule, where set, says which are lost.
func (p *process) lose(rule func(body string) (before, after bool)) {
	p.sent.Store(0)
	p.rule.Store(&rule)
}

func (p *process) befalls(_, body string) (before, after bool) {
	p.sent.Add(1)
	if rule := p.rule.Load(); rule != nil && *rule != nil {
		return (*rule)(body)
	}
	return false, false
}

// asks, passes and givesBack tell the requests of a permit.
func asks(body string) bool {
	return !strings.Contains(body, "REMOVE") && strings.Contains(body, "attribute_not_exists")
}

func passes(body string) bool {
	return strings.Contains(body, "REMOVE") && strings.Contains(body, "attribute_not_exists")
}

func givesBack(body string) bool {
	return strings.Contains(body, "REMOVE") && !strings.Contains(body, "attribute_not_exists")
}

type granted struct {
	permit *semaphore.Permit
	err    error
}

// acquire is a caller.
func (p *process) acquire(ctx context.Context) chan granted {
	got := make(chan granted, 1)
	go func() {
		permit, err := p.s.Acquire(ctx, "printer")
		got <- granted{permit, err}
	}()
	synctest.Wait()
	return got
}

// serve gives back permits in the order in which they come, and demands that tokens grow.
func serve(t *testing.T, last *semaphore.Permit, callers ...chan granted) {
	t.Helper()
	for _, c := range callers {
		got := <-c
		rig.Is(t, got.err)
		if got.permit == nil {
			return
		}
		if got.permit.Token() <= last.Token() {
			t.Errorf("token %d after %d", got.permit.Token(), last.Token())
		}
		rig.Is(t, got.permit.Release(t.Context()))
		last = got.permit
	}
}

func wantNone(t *testing.T, s *sem) {
	t.Helper()
	r := rig.Must(s.Resource(context.Background(), "printer"))(t)
	left := rig.Must(s.Permits(context.Background(), "printer"))(t)
	if r.Running != 0 || len(left) != 0 {
		t.Errorf("%d are counted, and %v are held", r.Running, left)
	}
}
