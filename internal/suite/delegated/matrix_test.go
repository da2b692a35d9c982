package delegated_test

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// A run: some processes with some callers each, who make some calls each. When all have
// ended, what is under way arrives, and each process makes one more call.
const (
	processes = 4
	callers   = 2
	calls     = 3
)

// attempts is an option of a client: how often the SDK sends a request.
func attempts(n int) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
			so.MaxAttempts = max(1, n)
			so.MaxBackoff = 20 * time.Millisecond
			so.RateLimiter = ratelimit.None
		})
	}
}

// run is a run of a cell. It returns what callers were told.
func run(t *testing.T, b *rig.Rig, c cell, more situation) (s sum) {
	b.InVirtualTime(t, 16, func(t *testing.T, next fault.Doer) {
		w := &world{network: &network{cell: c, seen: map[step]int{}}, t: t, next: next, table: b.Table, key: repo.Key{Partition: "s", Sort: rand.Text()}, told: map[string]told{}}
		quiet := w.program("beside", setup{attempts: 10})
		quiet.copier.On(nil)
		rig.Must(quiet.items.Create(t.Context(), list{Shop: "s", ID: w.key.Sort.(string), Event: 1}))(t)
		var programs []*program
		for n := range processes {
			programs = append(programs, w.program(fmt.Sprint(n), more.of(n)))
		}
		ctx, stop := context.WithCancel(context.Background())
		var others, all sync.WaitGroup
		if more.others != nil {
			others.Go(func() { more.others(ctx, w, quiet) })
		}
		for _, p := range programs {
			for c := range callers {
				all.Go(func() {
					for i := range calls {
						op := fmt.Sprintf("%s-%d-%d", p.name, c, i)
						if c == 1 && i == 1 {
							op += "!"
						}
						more.call(w, p, op)
					}
				})
			}
		}
		all.Wait()
		stop()
		others.Wait()
		before := w.operations()
		w.settle()
		if after := w.operations(); !slices.Equal(before, after) {
			t.Errorf("what came late was applied: %v\n-> %v", before, after)
		}
		for _, p := range programs {
			if !p.isDead() {
				more.call(w, p, p.name+"-after")
			}
			rig.Is(t, p.commands.Close(context.Background()))
		}
		w.settle()
		s = w.judge(w.operations(), func(what told) bool { return more.allows(w, what) })
		s.cells = 1
		if s.requests = w.requests(); s.requests > 4000 { // some 300 is usual, 1,500 where an answer is awaited for 10 s; who asks without end makes 15,000
			t.Errorf("%d requests", s.requests)
		}
		if c.what != nothing && w.victim() == nil {
			s.empty = 1
		}
	})
	return s
}

// situation is what is so in all cells of a table.
type situation struct {
	steps  []step
	what   []accident
	sdk    int                                                 // attempts; default 10
	each   func(n int) setup                                   // of the nth process
	wide   bool                                                // results are so long that rows get them
	leaves bool                                                // callers leave after a while
	others func(ctx context.Context, w *world, quiet *program) // what else happens to the item
	may    func(told) bool                                     // what callers may be told beside the command's own verdict
}

func (s situation) of(n int) (u setup) {
	if s.each != nil {
		u = s.each(n)
	}
	u.attempts, u.wide = 10, s.wide
	if s.sdk > 0 {
		u.attempts = s.sdk
	}
	return u
}

// call makes a call, of a caller who leaves or not.
func (s situation) call(w *world, p *program, op string) {
	ctx := context.Background()
	if s.leaves {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(mrand.IntN(40))*time.Millisecond)
		defer cancel()
	}
	w.call(ctx, p, op)
}

// allows reports whether a caller may be told what it was.
func (s situation) allows(w *world, what told) bool {
	hit := what.by.process == w.victim()
	return hit && (s.sdk == 1 || slices.Contains(fatal, w.what)) || s.may != nil && s.may(what)
}

var seed = flag.Uint64("seed", 0, "which cells the quick share has")

// share is of how many cells the quick share has one.
const share = 6

// table runs all cells of a situation.
func table(t *testing.T, s situation) {
	t.Helper()
	b := rig.New(t)
	rig.Is(t, rig.Must(repo.NewTable[list](b.Client, b.Table, repo.TableConfig{}))(t).EnsureTable(t.Context()))
	var mu sync.Mutex
	var total sum
	t.Cleanup(func() { t.Log(total) })
	cells := uint64(0)
	for _, at := range s.steps {
		for _, what := range s.what {
			for _, nth := range rig.Share([]int{0, 1, 2}, []int{0, 1, 2, 3, 5, 8, 13}) {
				if cells++; rig.Quick() && cells%share != *seed%share {
					continue
				}
				t.Run(fmt.Sprintf("%s %d, %s", at, nth, what), func(t *testing.T) {
					t.Parallel()
					told := run(t, b, cell{at, nth, what}, s)
					mu.Lock()
					defer mu.Unlock()
					total.add(told)
				})
			}
		}
	}
}

// TestOneAccident is the matrix of requests and what can befall them.
func TestOneAccident(t *testing.T) {
	for name, s := range map[string]situation{
		"10 attempts":     {sdk: 10, steps: steps},
		"1 attempt":       {sdk: 1, steps: steps},
		"answers in rows": {wide: true, steps: []step{roundItem, answerRow, lookMail, readRow, leaveItem}},
		"callers leave": {leaves: true, steps: []step{roundItem, postMail, takeBack, readItem, readRow, leaveItem}, may: func(what told) bool {
			return errors.Is(what.err, context.DeadlineExceeded)
		}},
	} {
		s.what = accidents
		t.Run(name, func(t *testing.T) { table(t, s) })
	}
}
