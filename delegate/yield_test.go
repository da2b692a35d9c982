package delegate

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/delegation"
	"github.com/dynahold/dynahold/internal/stored"
)

// Who loses the lead waits for the next leader, unless its own has passed its mail over and
// leads still. Where all went on to lead, nobody served anything.
func TestWhoLosesTheLeadWaits(t *testing.T) {
	for name, c := range map[string]struct{ toAnother, passed, forced bool }{
		"to another, its own seemed gone":      {toAnother: true},
		"to another, its own passed it over":   {toAnother: true, passed: true},
		"to its own, which was at work":        {},
		"to its own, which has passed it over": {passed: true, forced: true},
	} {
		b := &batch{forced: true, passed: c.passed}
		if b.yields(c.toAnother); b.forced != c.forced {
			t.Errorf("%s: forced is %v", name, b.forced)
		}
	}
	if (*batch)(nil).yields(true) != nil {
		t.Error("a leader without own commands has some")
	}
}

// Who was wrong about a leader waits twice as long, up to 16 times, and less again where it
// leads itself.
func TestWhoWasWrongAboutALeaderWaitsLonger(t *testing.T) {
	p := &place{}
	for _, want := range []int{2, 4, 8, 16, 16} {
		if p.overtook(true); p.goneAfter(0) != stalled*time.Duration(want) {
			t.Errorf("%v, want %d times %v", p.goneAfter(0), want, stalled)
		}
	}
	for _, want := range []int{8, 4, 2, 1, 1} {
		if p.overtook(false); p.goneAfter(0) != stalled*time.Duration(want) {
			t.Errorf("%v, want %d times %v", p.goneAfter(0), want, stalled)
		}
	}
}

// A request that has stalled says nothing of the next ones: a leader without work does not
// stay for long because of it, nor does who waits for one that is gone.
func TestAStallIsNoTrip(t *testing.T) {
	for name, before := range map[string]time.Duration{"the first one": 0, "among others": 5 * time.Millisecond} {
		p := &place{trip: before}
		p.took(10 * time.Second)
		if most := 2 * time.Second; p.stays() > most || p.goneAfter(1) > 2*most || p.patience() > 4*most {
			t.Errorf("%s: stays %v, gone after %v, patience %v", name, p.stays(), p.goneAfter(1), p.patience())
		}
	}
}

// goner is a client that ends the goroutine of each request, as a test's does by FailNow.
type goner struct {
	*dynamodb.Client
	asked atomic.Int64
}

func (g *goner) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	g.asked.Add(1)
	runtime.Goexit()
	return nil, nil
}

func (g *goner) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	runtime.Goexit()
	return nil, nil
}

// A leader whose client has ended the goroutines of looks for mail looks again, and puts again
// the answers whose put has ended so: it never did either any more.
func TestALeaderWhoseClientEndsItsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &goner{}
		table := stored.New(&stored.Table{Table: &ddb.Table{Name: "t", Partition: "id", Sort: "at", Client: client, Timeout: time.Second, Classify: func(err error) error { return err }}, Clock: time.Now})
		term := (&line{e: &engine{mail: &mailbox{table: table, queries: client}}}).newTerm(delegation.Evidence{})
		term.look()
		time.Sleep(time.Second)
		if n := client.asked.Load(); n <= int64(looksBeside*term.shards) {
			t.Errorf("%d looks at %d partitions", n, term.shards)
		}
		for range 2 {
			if !term.asked("a", 7) {
				t.Error("the answers are not put again")
			}
			term.answer("a", delegation.Served{Seq: 7})
			synctest.Wait()
		}
		term.end()
	})
}
