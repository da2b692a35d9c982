package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/localdb"
)

// TestMain makes the test binary the program when a crew starts it.
func TestMain(m *testing.M) {
	if crew.IsMember() {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestOneLeaderAfterTheOther(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
	}
	want := []string{"leaders one after the other", "is killed"}
	if crew.CanPause {
		want = append(want, "is paused", "wrote late with token", "finds out", "late writes refused: ")
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

// TestLateWritesMustBeSeen lets the demonstration end before anything was
// disturbed: that is not a success.
func TestLateWritesMustBeSeen(t *testing.T) {
	if !crew.CanPause {
		t.Skip("processes cannot be paused here")
	}
	var out, errs bytes.Buffer
	s := settings{candidates: 3, lease: time.Second, disturb: func(d *drama, e event) {
		if e.Kind == wrote {
			d.over = true
			d.stop()
		}
	}}
	if err := demonstrate(t.Context(), s, &out, &errs); err == nil || !strings.Contains(out.String(), "WRONG no late write was refused") {
		t.Errorf("%v\n%s%s", err, &out, &errs)
	}
}

// TestForgedLinesAreFound writes to the ledger without having been elected.
func TestForgedLinesAreFound(t *testing.T) {
	var out, errs bytes.Buffer
	s := settings{candidates: 3, lease: time.Second, disturb: func(d *drama, e event) {
		if e.Kind == wrote && !d.over {
			d.over = true
			if err := d.to.write(t.Context(), e.Token, "nobody"); err != nil {
				t.Error(err)
			}
			d.stop()
		}
	}}
	if err := demonstrate(t.Context(), s, &out, &errs); err == nil || !strings.Contains(out.String(), "and of nobody") {
		t.Errorf("%v\n%s%s", err, &out, &errs)
	}
}

// TestNoTableStaysBehind interrupts the program when the first of its tables is made.
func TestNoTableStaysBehind(t *testing.T) {
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	address, err := url.Parse(engine.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	forward := httputil.NewSingleHostReverseProxy(address)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forward.ServeHTTP(w, r)
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".CreateTable") {
			interrupt()
		}
	}))
	defer proxy.Close()
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", proxy.URL)
	var out, errs bytes.Buffer
	if code := run(ctx, nil, &out, &errs); code != 1 {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
	from := "dynahold-leader"
	left, err := engine.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{ExclusiveStartTableName: &from})
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() == nil || len(left.TableNames) > 0 && strings.HasPrefix(left.TableNames[0], from) {
		t.Errorf("interrupted: %v, tables %v\n%s", ctx.Err(), left.TableNames, &errs)
	}
}
