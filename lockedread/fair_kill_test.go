package lockedread_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// The environment of a process that a test kills.
const (
	childEndpoint = "LOCKEDREAD_TEST_ENDPOINT"
	childTable    = "LOCKEDREAD_TEST_TABLE"
)

var fairShort = lockedread.Config{Fair: true, Lease: 3 * time.Second, ClockSkew: 100 * time.Millisecond}

// child holds the item, or waits for it, until it is killed.
func child() int {
	e, err := localdb.Start(context.Background(), localdb.Config{Endpoint: os.Getenv(childEndpoint)})
	if err != nil {
		return 1
	}
	table, err := repo.NewTable[stock](e.Client(), os.Getenv(childTable), repo.TableConfig{})
	if err != nil {
		return 2
	}
	l, err := lockedread.New(table, fairShort)
	if err != nil {
		return 3
	}
	if _, err := l.Acquire(context.Background(), key); err != nil {
		return 4
	}
	_, _ = os.Stdout.WriteString("locked\n")
	select {}
}

func startChild(t *testing.T, b *bench) (*exec.Cmd, io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEndpoint+"="+engine.Endpoint(), childTable+"="+b.table)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

// TestFairDeadHolder: a dead holder costs its lease, and a wait that began
// before it died is not lost.
func TestFairDeadHolder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cmd, out := startChild(t, b)
	if word := make([]byte, 6); !read(out, word) || string(word) != "locked" {
		t.Fatalf("%q", word)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := b.locker(t, fairShort).Update(soon(t), key, addOne)
		waiting <- err
	}()
	b.queued(t, 2) // the holder stands there too
	kill(t, cmd)
	wantIs(t, <-waiting, nil)
	wantCount(t, b, 11)
	wantClean(t, b)
}

// TestFairDeadWaiter: one who died in the queue costs a grace, and those behind
// it come in their order.
func TestFairDeadWaiter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	// What this holder hands over ends with a grace: its lease would outlast the test.
	holder := acquire(t, b.locker(t, lockedread.Config{Fair: true, Lease: time.Hour}))
	cmd, _ := startChild(t, b)
	ctx := soon(t)
	b.queued(t, 1)
	order := make(chan int, 2)
	for i := range 2 {
		l := b.locker(t, fairShort)
		go func() {
			_, err := l.Update(ctx, key, func(ctx context.Context, s *stock) error {
				order <- i
				return addOne(ctx, s)
			})
			wantIs(t, err, nil)
			if i == 1 {
				close(order)
			}
		}()
		b.queued(t, i+2)
	}
	kill(t, cmd)
	wantIs(t, holder.Release(t.Context()), nil)
	if first, second := <-order, <-order; first != 0 || second != 1 {
		t.Errorf("served %d before %d", first, second)
	}
	for range order { // until the last one has its answer
	}
	wantCount(t, b, 12)
	wantClean(t, b)
}

func read(r io.Reader, to []byte) bool {
	_, err := io.ReadFull(r, to)
	return err == nil
}
