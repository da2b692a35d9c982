package ticket_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/ticket"
)

// hold is what a process that is to be killed does: it locks, and tells so.
func hold(args []string) error {
	q, err := ticket.New(rig.Client(), args[0], short)
	if err != nil {
		return err
	}
	if _, err := q.Lock(context.Background(), "door"); err != nil {
		return err
	}
	fmt.Println("locked")
	select {}
}

func TestS4_4_AKilledProcessIsPassedOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cmd := rig.Child(t, b.Table)
	out := rig.Must(cmd.StdoutPipe())(t)
	rig.Is(t, cmd.Start())
	word := make([]byte, len("locked\n"))
	if _, err := out.Read(word); err != nil || !strings.HasPrefix(string(word), "locked") {
		t.Fatalf("%q, %v", word, err)
	}
	// Only the killed process has a lease to be waited for.
	q := b.queue(t, ticket.Config{ClockSkew: short.ClockSkew})
	k := join(t, q, "door")
	if at, err := k.Position(t.Context()); at != 1 || err != nil {
		t.Errorf("position %d, %v", at, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	turn := rig.Must(k.Wait(t.Context()))(t)
	done(t, turn)
	wantEmpty(t, b, "door")
}
