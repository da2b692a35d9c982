package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// TestMain makes the test binary the program when a crew starts it.
func TestMain(m *testing.M) {
	if crew.IsMember() {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestNothingIsLostWhenADispatcherIsKilled(t *testing.T) {
	want := []string{"40 deployments done", "killed while it deployed", "dead letter d18", "counters right"}
	if crew.CanPause {
		want = append(want, "paused while it deployed", "its late write about")
	}
	var out, errs bytes.Buffer
	missing := func(want string) bool { return !strings.Contains(out.String(), want) }
	for try := 0; try < 4 && (try == 0 || slices.ContainsFunc(want, missing)); try++ { // who is paused may just have ended its work
		if code := run(t.Context(), []string{"-n", "40"}, &out, &errs); code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
		}
	}
	for _, want := range slices.DeleteFunc(want, func(w string) bool { return !missing(w) }) {
		t.Errorf("no %q in\n%s", want, &out)
	}
}

func TestUndisturbed(t *testing.T) {
	var out, errs bytes.Buffer
	// Nobody waits for a lease here, and none may be over because the machine is slow.
	if code := run(t.Context(), []string{"-dispatchers", "4", "-n", "30", "-kill=false", "-pause=false", "-lease", "1m"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
	}
	for _, unwanted := range []string{"killed", "paused", "late write about"} {
		if strings.Contains(out.String(), unwanted) {
			t.Errorf("%q in\n%s", unwanted, &out)
		}
	}
	if !strings.Contains(out.String(), "health check timed out") { // an attempt that no kill or pause has ended
		t.Errorf("no attempt has failed in\n%s", &out)
	}
}

// TestBrokenTablesAreFound puts a deployment into the line that nobody planned,
// and leaves a foreign visit in an environment, while the dispatchers work.
func TestBrokenTablesAreFound(t *testing.T) {
	var out, errs bytes.Buffer
	spoiled := false
	s := settings{dispatchers: 2, n: 16, lease: time.Second, disturb: func(o *office, e event) {
		if spoiled {
			return
		}
		spoiled = true
		// In production, where each deployment is fenced by itself: elsewhere the
		// first token that was there refuses this one.
		if err := o.site.log(t.Context(), "production", visit{began, "d99", 1, "p9"}); err != nil {
			t.Error(err)
		}
		if _, err := o.work.Enqueue(t.Context(), "us-canary", deployment{ID: "d98", Environment: "us-canary"}); err != nil {
			t.Error(err)
		}
	}}
	err := demonstrate(t.Context(), s, &out, &errs)
	for _, want := range []string{"WRONG production: p9 is still at d99", "WRONG us-canary: begun in the order"} {
		if err == nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v, no %q in\n%s%s", err, want, &out, &errs)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-dispatchers", "0"}, {"-n", "0"}, {"-lease", "1ms"}, {"-dispatchers", "51"}, {"-nonsense"}, {"more"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}
