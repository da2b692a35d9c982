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
	if os.Getenv(candidateEnv) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestOneLeaderAfterTheOther(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
	}
	want := []string{"leaders one after the other", "is killed"}
	if canPause {
		want = append(want, "is paused", "wrote late with token", "finds out", "1 late write refused")
	}
	for _, text := range want {
		if !strings.Contains(out.String(), text) {
			t.Errorf("no %q in\n%s", text, &out)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-candidates", "2"}, {"-lease", "1ms"}, {"-nonsense"}, {"more"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}

func TestBrokenLedgersAreFound(t *testing.T) {
	good := []entry{{1, "a"}, {1, "a"}, {2, "b"}, {5, "a"}}
	if faults := verify(good); len(faults) != 0 {
		t.Errorf("a good ledger: %v", faults)
	}
	for name, bad := range map[string][]entry{
		"late write":            {{1, "a"}, {2, "b"}, {1, "a"}},
		"one token, two owners": {{1, "a"}, {1, "b"}},
	} {
		if faults := verify(bad); len(faults) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}
