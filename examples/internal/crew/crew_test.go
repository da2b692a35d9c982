package crew

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"
)

type event struct{ Who, What string }

// TestMain makes the test binary a member: one that fails, or one that waits to
// be told to end.
func TestMain(m *testing.M) {
	if !IsMember() {
		os.Exit(m.Run())
	}
	what, who := os.Args[1], os.Args[2]
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := WithParent(ctx)
	Say(event{who, "began"})
	if what == "fail" {
		fmt.Print(`{"Who":"half a`)
		fmt.Fprintln(os.Stderr, "no luck")
		os.Exit(3)
	}
	<-ctx.Done()
	Say(event{who, "ended"})
	cancel()
	stop()
	os.Exit(0)
}

func members(what string, size int, grace time.Duration) Config {
	return Config{Prefix: "m", Size: size, Grace: grace, Args: func(name string) []string { return []string{what, name} }}
}

func TestWhyMembersFailed(t *testing.T) {
	c, err := Start[event](t.Context(), members("fail", 2, 0))
	if err != nil {
		t.Fatal(err)
	}
	heard := map[event]int{}
	for e := range c.Heard {
		heard[e]++
	}
	if len(heard) != 2 || heard[event{"m1", "began"}] != 1 || heard[event{"m2", "began"}] != 1 {
		t.Errorf("heard %v", heard)
	}
	errs := fmt.Sprint(c.Errs())
	for _, name := range c.Names {
		if want := name + ": exit status 3 no luck"; !strings.Contains(errs, want) {
			t.Errorf("no %q in %s", want, errs)
		}
	}
}

func TestMembersEndByThemselves(t *testing.T) {
	if !CanPause {
		t.Skip("processes cannot be asked to end here")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := Start[event](ctx, members("wait", 1, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for e := range c.Heard {
		said = append(said, e.What)
		cancel()
	}
	if got := strings.Join(said, " "); got != "began ended" {
		t.Errorf("said %q", got)
	}
	if errs := c.Errs(); len(errs) > 0 {
		t.Errorf("%v", errs)
	}
}

// TestMembersEndWithTheirParent starts one whose standard input nobody holds.
func TestMembersEndWithTheirParent(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "wait", "m1")
	cmd.Env = append(os.Environ(), memberEnv+"=1")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "ended") {
		t.Errorf("%s, %v", out, err)
	}
}
