package faults_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// Stock that is sold by processes which are killed at any moment: what was
// acknowledged is in the item, what is in the item was paid for by the stock,
// and it is never oversold.

const stock = 3000

// fairLease is the lease of optimistic's Fair, which cannot be set: all others wait for
// its end if who is killed holds the item.
const fairLease = 30 * time.Second

var errSoldOut = errors.New("sold out")

func TestMain(m *testing.M) { rig.MainOr(m, sell) }

// sellerModes are what the sellers use, all of them on one item.
func sellerModes() map[string]func(t *repo.Table[fixture.Account]) (repo.Repository[fixture.Account], error) {
	locks := func(cfg pessimistic.Config) func(t *repo.Table[fixture.Account]) (repo.Repository[fixture.Account], error) {
		cfg.Lease, cfg.ClockSkew = time.Second, time.Millisecond
		return func(t *repo.Table[fixture.Account]) (repo.Repository[fixture.Account], error) {
			return pessimistic.New(t, cfg)
		}
	}
	versions := func(cfg optimistic.Config) func(t *repo.Table[fixture.Account]) (repo.Repository[fixture.Account], error) {
		cfg.Attempts, cfg.ClockSkew = 1000, time.Millisecond
		return func(t *repo.Table[fixture.Account]) (repo.Repository[fixture.Account], error) {
			return optimistic.New(t, cfg)
		}
	}
	return map[string]func(t *repo.Table[fixture.Account]) (repo.Repository[fixture.Account], error){
		"pessimistic, combining":       locks(pessimistic.Config{Combine: true}),
		"optimistic, warm, combining":  versions(optimistic.Config{Combine: true, Warm: 10}),
		"pessimistic, handing on":      locks(pessimistic.Config{}),
		"optimistic, warm, handing on": versions(optimistic.Config{Warm: 10}),
		"pessimistic, combining, fair": locks(pessimistic.Config{Combine: true, Fair: true}),
		"optimistic, combining, fair":  versions(optimistic.Config{Combine: true, Fair: true}),
	}
}

// sell is a child process with a mode and a table: eight workers that take one
// from the stock each time, and say so when it is acknowledged.
func sell(args []string) error {
	table, err := repo.NewTable[fixture.Account](rig.Client(), args[1], repo.TableConfig{})
	if err != nil {
		return err
	}
	r, err := sellerModes()[args[0]](table)
	if err != nil {
		return err
	}
	return sellAll(context.Background(), r)
}

func sellAll(ctx context.Context, r repo.Repository[fixture.Account]) error {
	var out sync.Mutex
	var workers sync.WaitGroup
	var failed error
	for range 8 {
		workers.Go(func() {
			for {
				id := fmt.Sprintf("%08x", rand.Uint32())
				_, err := r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error {
					if a.Balance == 0 {
						return errSoldOut
					}
					a.Balance--
					a.Ops = append(a.Ops, id)
					return nil
				})
				out.Lock()
				switch {
				case err == nil:
					fmt.Println(id)
				case errors.Is(err, errSoldOut):
					out.Unlock()
					return
				default:
					failed = err
				}
				out.Unlock()
			}
		})
	}
	workers.Wait()
	return failed
}

func TestKilledProcessesNeitherOversellNorLose(t *testing.T) {
	kills := rig.Share(2, 8)
	all := sellerModes()
	for mode := range all {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			killSellers(t, []string{mode}, kills)
		})
	}
	t.Run("all mixed", func(t *testing.T) {
		t.Parallel()
		var names []string
		for mode := range all {
			names = append(names, mode)
		}
		slices.Sort(names)
		killSellers(t, names, kills)
	})
}

// killSellers runs three sellers, kills one after the other in the middle of
// what it does, and starts another in its place.
func killSellers(t *testing.T, modes []string, kills int) {
	w := fixture.New(t)
	table := w.Items(t, w.Client)
	r := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	rig.Must(r.Create(t.Context(), fixture.Account{ID: "hot", Seq: 1, At: 1, Balance: stock}))(t)
	sales := &sales{}
	var running []*seller
	for i := range 3 {
		running = append(running, startSeller(t, w, modes[i%len(modes)], sales))
	}
	for kill := range kills {
		before := sales.count()
		deadline := time.Now().Add(fairLease + rig.Patience)
		for sales.count() < before+20 { // somebody is in the middle of something
			if time.Now().After(deadline) {
				t.Fatalf("%d sales in %v, after %d kills", sales.count()-before, fairLease+rig.Patience, kill)
			}
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) // a moment nobody foresees
		}
		i := rand.IntN(len(running))
		running[i].kill(t)
		running[i] = startSeller(t, w, modes[(kill+1)%len(modes)], sales)
	}
	for _, s := range running {
		s.kill(t)
	}
	got := rig.Must(table.Get(t.Context(), fixture.HotKey))(t)
	if got.Balance < 0 || got.Balance+int64(len(got.Ops)) != stock {
		t.Errorf("%d left and %d sold of %d", got.Balance, len(got.Ops), stock)
	}
	in := map[string]int{}
	for _, id := range got.Ops {
		if in[id]++; in[id] > 1 {
			t.Errorf("%s is sold %d times", id, in[id])
		}
	}
	for _, id := range sales.acknowledged() {
		if in[id] == 0 {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	t.Logf("%d processes killed, %d sold, %d of them acknowledged", kills+len(running), len(got.Ops), sales.count())
}

// sales are what the sellers said was acknowledged.
type sales struct {
	mu  sync.Mutex
	ids []string
}

func (s *sales) count() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.ids) }

func (s *sales) acknowledged() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ids)
}

// seller is a child process.
type seller struct {
	cmd  *exec.Cmd
	read chan struct{} // closed when all that it said was read
	errs *strings.Builder
}

func startSeller(t *testing.T, w *fixture.Fixture, mode string, to *sales) *seller {
	t.Helper()
	s := &seller{cmd: rig.Child(t, mode, w.Table), read: make(chan struct{}), errs: &strings.Builder{}}
	s.cmd.Stderr = s.errs
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.read)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return // a line that was cut off acknowledges nothing
			}
			to.mu.Lock()
			to.ids = append(to.ids, strings.TrimSpace(line))
			to.mu.Unlock()
		}
	}()
	return s
}

func (s *seller) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-s.read
	_ = s.cmd.Wait()
	if s.errs.Len() > 0 {
		t.Errorf("a seller said: %s", s.errs)
	}
}
