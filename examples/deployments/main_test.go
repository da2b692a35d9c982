package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

// TestMain makes the test binary the program when a crew starts it.
func TestMain(m *testing.M) {
	if os.Getenv(dispatcherEnv) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestNothingIsLostWhenADispatcherIsKilled(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-n", "40"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
	}
	for _, want := range []string{"40 deployments done", "killed while it deployed", "health check timed out", "dead letter d18", "counters right"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-dispatchers", "0"}, {"-n", "0"}, {"-lease", "1ms"}, {"-nonsense"}, {"more"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}

func TestBrokenLogsAreFound(t *testing.T) {
	plan := []deployment{{ID: "d1", Environment: "dev"}, {ID: "d2", Environment: "dev", Flaky: 1}}
	good := []visit{{began, "d1", 1, "p1"}, {began, "d1", 2, "p2"}, {ended, "d1", 2, "p2"},
		{began, "d2", 3, "p2"}, {failed, "d2", 3, "p2"}, {began, "d2", 4, "p3"}, {ended, "d2", 4, "p3"}}
	if faults := audit("dev", plan, good, "p1"); len(faults) != 0 {
		t.Errorf("a good log: %v", faults)
	}
	unsaid := append([]visit{{began, "d1", 1, "p1"}, {ended, "d1", 1, "p1"}}, good[1:]...)
	if faults := audit("dev", plan, unsaid, "p1"); len(faults) != 0 {
		t.Errorf("done, but killed before it could say so: %v", faults)
	}
	if faults := audit("dev", plan, good, "p9"); len(faults) == 0 {
		t.Error("taken over from a dispatcher that lives: not found")
	}
	unfailed := append(append([]visit{}, good[1:3]...), good[5:]...)
	if faults := audit("dev", plan, unfailed, ""); len(faults) == 0 {
		t.Error("never failed: not found")
	}
	for name, bad := range map[string][]visit{
		"lost":          good[:3],
		"done twice":    append(append([]visit{}, good...), visit{began, "d1", 5, "p2"}, visit{ended, "d1", 5, "p2"}),
		"two at once":   append([]visit{{began, "d1", 1, "p2"}, {began, "d2", 2, "p3"}}, good[2:]...),
		"wrong order":   append(append([]visit{}, good[3:]...), good[:3]...),
		"somebody else": append(append([]visit{}, good[:6]...), visit{ended, "d2", 4, "p9"}),
		"still at it":   good[:6],
	} {
		if faults := audit("dev", plan, bad, "p1"); len(faults) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}
