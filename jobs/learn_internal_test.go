package jobs

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/resources"
)

// A look that was under way while this process started and ended a job tells of the
// resource as it was before: with room for none. The next job that is enqueued here is
// started at once all the same, and not when somebody looks again.
func TestALookFromBeforeHoldsUpNoJob(t *testing.T) {
	running := resources.Row{Name: "staging", Limit: 1, Running: 1}
	for name, learns := range map[string]func(d *dispatcher, began int){
		"before it is enqueued": func(d *dispatcher, began int) { d.learn(running, began); d.enqueued("staging") },
		"after it was enqueued": func(d *dispatcher, began int) { d.enqueued("staging"); d.learn(running, began) },
	} {
		d := withWorkers(t, 1)
		d.enqueued("staging")
		p, _, n, _ := d.next()
		d.started(p, running, n, 1, insists)
		began := d.soFar()
		d.ended(p, true, false)
		learns(d, began)
		if p, r, _, _ := d.next(); p == nil || r.Limit > 0 && r.Full() || r.Queued != 1 {
			t.Errorf("%s: the job is not started at once: %+v", name, r)
		}
	}
}

// What a look has read since is believed, and so are the permits that it has seen.
func TestALookIsBelieved(t *testing.T) {
	d := withWorkers(t, 1)
	d.enqueued("staging")
	p, _, n, _ := d.next()
	d.started(p, resources.Row{Name: "staging", Limit: 2}, n, 0, insists)
	seen := resources.Row{Name: "staging", Limit: 2, Running: 2, Permits: map[string]resources.Permit{"o_1": {}, "o_2": {}}}
	for began, moves := range []int{0, d.soFar()} {
		if d.learn(seen, moves); p.now.Running != 2 {
			t.Errorf("look %d: %d run", began, p.now.Running)
		}
	}
	if d.enqueued("staging"); p.inLine {
		t.Error("a job is to be started where permits are in the way")
	}
}

// withWorkers is a dispatcher with so many workers, which sends nothing.
func withWorkers(t *testing.T, free int) *dispatcher {
	t.Helper()
	q, err := New[string](dynamodb.New(dynamodb.Options{}), "none", Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &dispatcher{s: q.s, free: free, posts: map[string]*post{}, wake: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
}
