package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// forgetful makes servers lose the keys of requests.
const forgetful = "ORDERS_TEST_FORGETFUL"

// TestMain makes the test binary a server when a crew starts it.
func TestMain(m *testing.M) {
	if !crew.IsMember() {
		os.Exit(m.Run())
	}
	if os.Getenv(forgetful) != "" {
		wrap = func(api http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("Idempotency-Key", r.Header.Get("Idempotency-Key")+r.RemoteAddr)
				api.ServeHTTP(w, r)
			})
		}
	}
	crew.Main(run)
}

func TestNothingIsLostWhenServersAreKilled(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-n", "80", "-clients", "8"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
	}
	if n := strings.Count(out.String(), "killed with"); n != 2 {
		t.Errorf("%d servers were killed, want 2\n%s", n, &out)
	}
	for _, want := range []string{"orders are those that clients were told of (80)", "nothing is locked"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// TestServersWithoutKeysAreFound: the audit must see what the keys are for.
func TestServersWithoutKeysAreFound(t *testing.T) {
	t.Setenv(forgetful, "1")
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-n", "20", "-servers", "2", "-clients", "4"}, &out, &errs); code != 1 || !strings.Contains(out.String(), "was never answered") {
		t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
	}
}

// TestNoServerOutlivesTheProgram interrupts it while clients buy.
func TestNoServerOutlivesTheProgram(t *testing.T) {
	d, endpoint := stocked(t)
	d.servers, d.clients, d.n = 2, 4, 400
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	house := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { interrupt() })) // at the first notice
	defer house.Close()
	d.warehouse.url = house.URL
	if err := d.run(ctx, endpoint, wishes(d.n, 1)); ctx.Err() == nil || err == nil {
		t.Errorf("interrupted: %v, %v", ctx.Err(), err)
	}
	select {
	case _, running := <-d.crew.Heard:
		if !running {
			return
		}
	default:
	}
	t.Error("servers are still at work")
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-servers", "0"}, {"-servers", "51"}, {"-clients", "0"}, {"-n", "0"}, {"-nonsense"}, {"more"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}
