package lockedread_test

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

var fairShort = lockedread.Config{Fair: true, Lease: 3 * time.Second, ClockSkew: 100 * time.Millisecond}

// hold is what a process that a test kills does: it holds the item of a table,
// or waits for it.
func hold(args []string) error {
	table, err := repo.NewTable[stock](rig.Client(), args[0], repo.TableConfig{})
	if err != nil {
		return err
	}
	l, err := lockedread.New(table, fairShort)
	if err != nil {
		return err
	}
	if _, err := l.Acquire(context.Background(), key); err != nil {
		return err
	}
	fmt.Println("locked")
	select {}
}

func startHolder(t *testing.T, b bench) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := rig.Child(t, b.Table)
	out := rig.Must(cmd.StdoutPipe())(t)
	rig.Is(t, cmd.Start())
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
	cmd, out := startHolder(t, b)
	if word := make([]byte, 6); !read(out, word) || string(word) != "locked" {
		t.Fatalf("%q", word)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := b.locker(t, fairShort).Update(soon(t), key, addOne)
		waiting <- err
	}()
	rig.Await(t, "the holder and another stand in the queue, or the lease was over first", func() bool { return b.entries(t) >= 2 || len(waiting) > 0 })
	kill(t, cmd)
	rig.Is(t, <-waiting)
	wantCount(t, b, 11)
	wantClean(t, b)
}

// TestFairDeadWaiter: one who died in the queue costs a grace, and those behind
// it are served. That they come in their order: [TestFairOrderAfterTheDead], where no
// machine is too busy for a waiter to be in time.
func TestFairDeadWaiter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	// What this holder hands over ends with a grace: its lease would outlast the test.
	holder := acquire(t, b.locker(t, lockedread.Config{Fair: true, Lease: time.Hour}))
	cmd, _ := startHolder(t, b)
	ctx := soon(t)
	b.queued(t, 1)
	var served []int // guarded by the lock under test: the race detector looks
	var waiting sync.WaitGroup
	for i := range 2 {
		l := b.locker(t, lockedread.Config{Fair: true})
		waiting.Go(func() {
			_, err := l.Update(ctx, key, func(ctx context.Context, s *stock) error {
				served = append(served, i)
				return addOne(ctx, s)
			})
			rig.Is(t, err)
		})
		b.queued(t, i+2)
	}
	kill(t, cmd)
	rig.Is(t, holder.Release(t.Context()))
	waiting.Wait()
	rig.Equal(t, len(served), 2, "served")
	wantCount(t, b, 12)
	wantClean(t, b)
}

func read(r io.Reader, to []byte) bool {
	_, err := io.ReadFull(r, to)
	return err == nil
}
