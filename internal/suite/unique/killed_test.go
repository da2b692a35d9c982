package unique_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// register is a child process with a strategy and a table: workers that race until the
// process is killed, and say so of each change that is acknowledged.
func register(args []string) error {
	table, err := repo.NewTable[customer](rig.Client(), args[1], repo.TableConfig{})
	if err != nil {
		return err
	}
	s, err := openers[args[0]](table, time.Second)
	if err != nil {
		return err
	}
	var out sync.Mutex
	failed := make(chan error)
	for range 6 {
		go func() {
			for {
				err := act(context.Background(), s)
				switch {
				case !expected(err):
					failed <- err
					return
				case err == nil:
					out.Lock()
					fmt.Println("done")
					out.Unlock()
				}
			}
		}()
	}
	return <-failed
}

// A process may die between any two steps of a change: there is no step between the item
// and its claims.
func TestKilledProcessesLeaveNoClaimBehind(t *testing.T) {
	r := rig.New(t)
	rig.Is(t, open(t, r, "optimistic", lease).table.EnsureTable(t.Context()))
	var done atomic.Int64
	start := func(strategy string) func() {
		var errs strings.Builder
		cmd := rig.Child(t, strategy, r.Table)
		cmd.Stderr = &errs
		out := rig.Must(cmd.StdoutPipe())(t)
		rig.Is(t, cmd.Start())
		read := make(chan struct{})
		go func() {
			defer close(read)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				done.Add(1)
			}
		}()
		return func() { kill(t, cmd, read, &errs) }
	}
	var running []func()
	strategies := []string{"optimistic", "pessimistic", "pessimistic, combining", "pessimistic, racing", "optimistic, warm and combining"}
	for _, strategy := range strategies[:3] {
		running = append(running, start(strategy))
	}
	for n := range rig.Share(4, 20) {
		before := done.Load()
		rig.Await(t, "others go on", func() bool { return done.Load() > before+10 })
		i := rand.IntN(len(running))
		running[i]()
		running[i] = start(strategies[n%len(strategies)])
	}
	for _, kill := range running {
		kill()
	}
	still(t, r)
	audit(t, r)
	t.Logf("%d changes", done.Load())
}

func kill(t *testing.T, cmd *exec.Cmd, read <-chan struct{}, errs *strings.Builder) {
	t.Helper()
	if err := cmd.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	<-read
	_ = cmd.Wait()
	if errs.Len() > 0 {
		t.Errorf("a process said: %s", errs)
	}
}

// still waits until the engine has done what killed processes have sent last: until two
// scans, between which it has answered a hundred requests, are the same.
func still(t *testing.T, r *rig.Rig) {
	t.Helper()
	state := func() string {
		var all []string
		items, claims := rows(t, r.Table)
		for _, i := range items {
			all = append(all, fmt.Sprint(text(i["id"]), text(i["email"]), text(i["login"]), i["version"].(*types.AttributeValueMemberN).Value))
		}
		for _, c := range claims {
			of, id := owner(c)
			all = append(all, fmt.Sprint(text(c["id"]), of, id))
		}
		slices.Sort(all)
		return strings.Join(all, "\n")
	}
	last := ""
	rig.Await(t, "the table is still", func() bool {
		for range 100 {
			_, err := r.Client.GetItem(t.Context(), get(r.Table))
			rig.Is(t, err)
		}
		now := state()
		same := now == last
		last = now
		return same
	})
}

func get(table string) *dynamodb.GetItemInput {
	return &dynamodb.GetItemInput{TableName: &table, Key: row{"id": &types.AttributeValueMemberS{Value: "p0"}}}
}
