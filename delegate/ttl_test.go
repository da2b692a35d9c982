package delegate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// expire removes the rows whose time is over after a while, as TTL does, some time later.
func expire(t *testing.T, client *dynamodb.Client, table string, after time.Duration) (removed int) {
	t.Helper()
	all := rig.Must(client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table}))(t)
	for _, row := range all.Items {
		at, ok := row["expiresAt"].(*types.AttributeValueMemberN)
		if !ok {
			continue
		}
		if seconds := rig.Must(strconv.ParseInt(at.Value, 10, 64))(t); time.Unix(seconds, 0).After(time.Now().Add(after)) {
			continue
		}
		rig.Must(client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{"shop": row["shop"], "id": row["id"]}}))(t)
		removed++
	}
	return removed
}

// frozen is the network of a process that stands still behind its mail, as a machine that is
// suspended: nothing that it asks is answered until it goes on, however long that is.
type frozen struct {
	next   fault.Doer
	posted chan struct{}
	on     chan struct{}
	once   sync.Once
	silent bool // so it does before the answer to its mail
}

func (f *frozen) Do(req *http.Request) (*http.Response, error) {
	body, err := fault.Body(req)
	if err != nil {
		return nil, err
	}
	select {
	case <-f.posted:
		<-f.on
		req = req.WithContext(context.WithoutCancel(req.Context()))
	default:
	}
	resp, err := f.next.Do(req)
	if strings.Contains(string(body), "mailItem") {
		f.once.Do(func() {
			if close(f.posted); f.silent {
				<-f.on
				resp, err = nil, errors.New("connection reset")
			}
		})
	}
	return resp, err
}

// patient opens a process that waits for answers for a day.
func patient(t *testing.T, doer fault.Doer, name string) *process {
	return opened(t, rig.Must(repo.NewTable[list](rig.Client(rig.Over(doer)), name, repo.TableConfig{AttemptTimeout: 24 * time.Hour}))(t))
}

// wide is a command with a result of a kilobyte: the item soon forgets what rows have.
func (p *process) wide(t *testing.T) *delegate.Call[string, string] {
	return rig.Must(delegate.Command(p.all, "wide/v1", func(_ context.Context, l *list, op string) (string, error) {
		l.Ops = append(l.Ops, op)
		return op + strings.Repeat("x", 1000), nil
	}))(t)
}

// A process stands still behind its mail for so long that TTL removes the rows. Whatever has
// become of the mail meanwhile, it is applied once at most, and the process is told nothing
// that is not true.
func TestRowsThatTTLRemovesWhileAMailIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		others int  // calls of others after the mail was served: the item forgets what rows have
		dies   bool // the leader is killed before it serves the mail
		leaves bool // the caller's context has ended when its process goes on
		silent bool // it has no answer to its mail, and puts it once more
		behind bool // the clock of the leader is three hours behind, and the process does not stand still for long
	}{
		"served, on the item":                                                       {},
		"served, on the item, the caller leaves":                                    {leaves: true},
		"served, and forgotten":                                                     {others: 8},
		"served, and forgotten, the caller leaves":                                  {others: 8, leaves: true},
		"served, and forgotten, its answer lost":                                    {others: 8, silent: true},
		"served, and forgotten, its answer lost, the caller leaves":                 {others: 8, silent: true, leaves: true},
		"served, and forgotten, its answer lost, by a leader whose clock is behind": {others: 8, silent: true, behind: true},
		"nobody serves it":                                                          {dies: true},
		"nobody serves it, the caller leaves":                                       {dies: true, leaves: true},
		"others go on without it":                                                   {dies: true, others: 8},
		"others go on without it, the caller leaves":                                {dies: true, others: 8, leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := rig.New(t)
			rig.Is(t, start(t, b.Client, b.Table).items.Table().EnsureTable(t.Context()))
			b.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
				seen := newAudit()
				do := func(ctx context.Context, call *delegate.Call[string, string], op string) {
					got, err := call.Do(ctx, key, op)
					if seen.record(op, err); err == nil && !strings.HasPrefix(got, op+"x") {
						t.Errorf("%s has the result of %.10s", op, got)
					}
				}
				slow := func() *rig.Mortal { return &rig.Mortal{Next: network, Latency: time.Millisecond} }
				client := rig.Client(rig.Over(network))
				beside := start(t, client, b.Table)
				rig.Must(beside.items.Create(t.Context(), list{Shop: "s", ID: "list"}))(t)

				// Another writes behind the first reading of who is to lead.
				net, first := slow(), true
				net.Lost = func(op, body string) (before, after bool) {
					if op == "UpdateItem" && first {
						first = false
						rig.Must(beside.items.Update(context.Background(), key, func(_ context.Context, l *list) error { l.Others++; return nil }))(t)
					}
					return c.dies && op == "Query", false // it never sees mail
				}
				leader := patient(t, net, b.Table)
				if c.behind {
					leader = opened(t, rig.Must(repo.NewTable[list](rig.Client(rig.Over(net)), b.Table, repo.TableConfig{Clock: func() time.Time { return time.Now().Add(-3 * time.Hour) }}))(t))
				}
				do(t.Context(), leader.wide(t), "leads")
				still := &frozen{next: slow(), posted: make(chan struct{}), on: make(chan struct{}), silent: c.silent}
				sender := patient(t, still, b.Table)
				sends := sender.wide(t)
				ctx, cancel := context.WithCancel(t.Context())
				told := make(chan struct{})
				go func() { do(ctx, sends, "waits"); close(told) }()
				<-still.posted
				net.Dead.Store(c.dies)
				time.Sleep(30 * time.Millisecond)
				var crowd sync.WaitGroup
				for n := range min(4, c.others) {
					p := patient(t, slow(), b.Table)
					call := p.wide(t)
					crowd.Go(func() {
						for i := range c.others {
							do(context.Background(), call, fmt.Sprint(n, "-", i))
						}
						rig.Is(t, p.all.Close(context.Background()))
					})
				}
				crowd.Wait()
				stood := 3 * time.Hour // its own clock stands still, or is behind
				if c.behind {
					stood = time.Minute
				}
				if c.silent {
					time.Sleep(stood)
				}
				if c.leaves {
					cancel()
				}
				removed := expire(t, client, b.Table, stood)
				if removed == 0 && !c.behind {
					t.Error("TTL has removed nothing")
				}
				close(still.on)
				<-told
				cancel()
				do(t.Context(), sends, "after") // with the next number
				rig.Is(t, sender.all.Close(context.Background()))
				net.Dead.Store(false)
				rig.Is(t, leader.all.Close(context.Background()))
				got := rig.Must(beside.items.Get(t.Context(), key))(t)
				seen.check(t, got.Ops)
				t.Logf("%d rows removed; told %v", removed, seen.told["waits"])
			})
		})
	}
}

// TTL removes the rows of callers that have gone, and nothing else. Who comes after that goes
// on, those that were there before, too.
func TestWhatTTLRemoves(t *testing.T) {
	b := rig.New(t)
	rig.Is(t, start(t, b.Client, b.Table).items.Table().EnsureTable(t.Context()))
	b.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		seen := newAudit()
		client := rig.Client(rig.Over(network))
		beside := start(t, client, b.Table)
		rig.Must(beside.items.Create(t.Context(), list{Shop: "s", ID: "list"}))(t)
		var processes []*process
		crowd := func(name string) {
			var all sync.WaitGroup
			for n, p := range processes {
				all.Go(func() {
					for i := range 6 {
						op := fmt.Sprint(name, n, "-", i, ".")
						_, err := p.add.Do(context.Background(), key, op)
						seen.record(op, err)
					}
				})
			}
			all.Wait()
		}
		for range 6 {
			processes = append(processes, start(t, rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: 2 * time.Millisecond})), b.Table))
		}
		crowd("first")
		time.Sleep(time.Minute) // nobody leads
		if n := expire(t, client, b.Table, 0); n != 0 {
			t.Errorf("%d rows were removed at once", n)
		}
		rows := len(rig.Must(client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &b.Table}))(t).Items) - 1
		if n := expire(t, client, b.Table, 2*time.Hour); n != rows || n < 3 {
			t.Errorf("%d of %d rows were removed", n, rows)
		}
		crowd("second")
		got := rig.Must(beside.items.Get(t.Context(), key))(t)
		seen.check(t, got.Ops)
		if len(got.Ops) != 2*6*6 {
			t.Errorf("%d operations", len(got.Ops))
		}
		for _, p := range processes {
			rig.Is(t, p.all.Close(t.Context()))
		}
	})
}
