package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// between is an endpoint before the engine: it is told each operation before it is
// forwarded, and refuses it where that returns false; and after it was done, before it is answered.
func (n *night) between(before func(operation string) bool, after func(r *http.Request, operation string)) {
	n.Helper()
	target, err := url.Parse(n.endpoint)
	n.is(err)
	operation := func(r *http.Request) string {
		_, name, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		return name
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.ModifyResponse = func(r *http.Response) error {
		if after != nil {
			after(r.Request, operation(r.Request))
		}
		return nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil && !before(operation(r)) {
			refuse(w)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	n.Cleanup(server.Close)
	n.endpoint = server.URL
}

// What was done is told, also where what comes after it fails.
func TestWhatWasDoneIsTold(t *testing.T) {
	n := newNight(t)
	locks, token := " locks nightly-report", n.field("locks show locks nightly-report", "token")
	for _, line := range []string{"resources pause jobs mails --yes", "jobs requeue jobs orders " + n.job, "locks break" + locks + " --yes -o json --token " + token, "unique repair orders --of total --yes"} {
		var errs bytes.Buffer
		c := &console{out: broken{}, err: &errs, width: plainWidth}
		code := run(t.Context(), append(strings.Fields(line), "--endpoint", n.endpoint), c, &fake{})
		if verb := strings.Fields(line)[1]; code != exitFailed || !strings.Contains(errs.String(), map[string]string{"pause": "paused: mails", "requeue": "requeued: " + n.job, "break": "broken: ", "repair": "mended: 1"}[verb]) {
			t.Errorf("%s: code %d, %s", line, code, &errs)
		}
	}
	var done atomic.Bool
	n.between(func(operation string) bool { return operation != "GetItem" || !done.Load() },
		func(_ *http.Request, operation string) { done.Store(done.Load() || operation == "UpdateItem") })
	n.says("resources resume jobs mails --yes", exitFailed, "resumed: mails", "not now")
}

// What answers in DynamoDB's place has not looked into the table: nothing is called right by it,
// or not there.
func TestAnswersOfSomethingElse(t *testing.T) {
	n := newNight(t)
	n.put("orders", map[string]types.AttributeValue{"id": word("b"), "writers": word("Ann, Bob")})
	engine, err := url.Parse(n.endpoint)
	n.is(err)
	forward := httputil.NewSingleHostReverseProxy(engine)
	for operation, lines := range map[string][]string{
		"DescribeTable": {"item show orders 1001", "locks list locks", "table describe orders", "table create orders --partition id --yes"},
		"Scan": {"table check orders", "unique check orders --of total", "unique repair orders --of totl --yes", "locks list orders",
			"locks break orders 1001 --attribute LockedBy=holder --yes --token 1"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+operation) {
				_, _ = w.Write([]byte("{}"))
				return
			}
			forward.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		n.endpoint = server.URL
		for _, line := range lines {
			n.says(line, exitFailed, "on table")
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

// Whoever interrupts a break whose answer is not there yet is told that it may be done.
func TestInterruptedWithoutAnAnswer(t *testing.T) {
	n := newNight(t)
	token := n.field("locks show locks nightly-report", "token")
	ctx, interrupt := context.WithCancel(t.Context())
	n.between(nil, func(r *http.Request, operation string) {
		if operation == "UpdateItem" {
			interrupt()
			<-r.Context().Done() // the tool has left
		}
	})
	var out, errs bytes.Buffer
	code := run(ctx, strings.Fields("locks break locks nightly-report --yes --endpoint "+n.endpoint+" --token "+token), &console{out: &out, err: &errs, width: plainWidth}, &fake{})
	if code != exitFailed || out.Len() > 0 || !strings.Contains(errs.String(), "unknown") {
		t.Errorf("code %d, %s, %s", code, &out, &errs)
	}
}

// A name that was mistyped is not the resource that was meant.
func TestResourcesThatNobodyHasUsed(t *testing.T) {
	n := newNight(t)
	for _, line := range []string{"resources resume jobs mail --yes", "resources pause jobs mail --yes", "jobs list jobs mail", "jobs dead jobs mail", "permits list jobs mail -o json",
		"jobs requeue jobs mail --all --yes", "jobs discard jobs mail --all --dry-run"} {
		n.says(line, exitNothing, `resource "mail" is not in table "jobs": nobody has used it`)
	}
	n.says("resources limit jobs mail 1 --yes", exitOK, "nobody has used it")
	for _, line := range []string{"jobs list jobs mail", "jobs dead jobs mail", "permits list jobs mail", "jobs requeue jobs mail --all --yes", "resources pause jobs mail --yes"} {
		n.says(line, exitOK)
	}
	n.says("resources resume jobs mail --yes", exitOK, "resumed: mail")
	n.says("resources resume jobs mail --yes", exitOK, "resumed: mail")
	n.says("resources pause jobs orders --yes", exitOK, "state before", "not paused")
}

type scan struct {
	Number  int    `dynamodbav:"number" repo:"pk"`
	Part    []byte `dynamodbav:"part" repo:"sk"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// Bytes of keys are printed as they are given: in base64.
func TestKeysOfNumbersAndBytes(t *testing.T) {
	n := newNight(t)
	table, err := repo.NewTable[scan](n.client, "scans", repo.TableConfig{})
	n.is(err)
	n.is(table.EnsureTable(t.Context()))
	items, err := lockedread.New(table, lockedread.Config{Owner: "till-5", Lease: time.Hour})
	n.is(err)
	_, err = items.Upsert(t.Context(), repo.Key{Partition: 7, Sort: []byte{0, 255, 3}}, func(context.Context, *scan) error { return nil })
	n.is(err)
	_, err = items.Acquire(t.Context(), repo.Key{Partition: 7, Sort: []byte{0, 255, 3}})
	n.is(err)
	n.put("scans", map[string]types.AttributeValue{"number": number("8"), "part": &types.AttributeValueMemberB{Value: []byte{9}}, "writers": word("Ann")})
	for line, code := range map[string]int{"item show scans 7.0 AP8D": exitOK, "locks show scans 7 AP8D": exitOK, "locks break scans 7 AP8D --yes --token 3": exitMoved, "item show scans 9 AP8D": exitNothing} {
		n.says(line, code, "AP8D")
	}
	n.says("locks show scans 9 AP8D", exitNothing, "AP8D")
	if code, _, errs := call(t.Context(), &fake{}, "item", "show", "--endpoint", n.endpoint, "scans", "--", "-7", "AP8D"); code != exitNothing || !strings.Contains(errs, "{-7 AP8D}") {
		t.Errorf("code %d, %s", code, errs)
	}
	n.says("table check scans", exitFound, "{8 CQ==}")
	n.says("locks list scans", exitOK, "7 AP8D")
	n.says("item show scans -7 AP8D", exitUsage, `after "--"`)
	n.says("item show scans seven AP8D", exitUsage, "seven")
	n.says("item show scans 7 !", exitUsage, "base64")
	n.says("locks break scans 7 AP8D --yes --token "+n.field("locks show scans 7 AP8D", "token"), exitOK, "broken: {7 AP8D}")
}

// Flags that say which DynamoDB is meant are heeded on this machine, too.
func TestRegionsAndProfilesOfThisMachine(t *testing.T) {
	n := newNight(t)
	signed := make(chan string, 100)
	n.between(nil, func(r *http.Request, _ string) { signed <- r.Header.Get("Authorization") })
	n.says("table describe orders --region eu-central-1", exitOK)
	if got := <-signed; !strings.Contains(got, "/eu-central-1/dynamodb/") {
		t.Errorf("signed for %s", got)
	}
	n.says("table describe orders --profile nobody-has-this", exitFailed, "nobody-has-this")
	if code, _, errs := call(t.Context(), &fake{}, "table", "describe", "orders", "--endpoint", "here"); code != exitUsage || !strings.Contains(errs, "--endpoint must look like") {
		t.Errorf("code %d, %s", code, errs)
	}
}

func TestNamesThatMakeNoSense(t *testing.T) {
	n := newNight(t)
	n.says("table create bills --yes --partition id:X", exitUsage, `"X"`)
	n.says("table create bills --yes --partition id --sort at:number", exitUsage, `"number"`)
	n.says("table create bills --yes --partition :N", exitUsage)
	if code, out, errs := call(t.Context(), &fake{}, "jobs", "list", "jobs", "", "--endpoint", n.endpoint); code != exitUsage || out != "" {
		t.Errorf("the jobs of a resource without a name: code %d, %s%s", code, out, errs)
	}
	for _, line := range []string{"jobs list j?", "jobs dead j? orders", "queue list q? printer", "permits list p? till"} {
		n.says(line, exitUsage, "table name")
	}
}

func TestMoments(t *testing.T) {
	now := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	for away, want := range map[time.Duration]string{
		-time.Millisecond: "(0s ago)", 0: "(0s ago)", time.Millisecond: "(in 0s)", -90 * time.Second: "(1m30s ago)", time.Hour: "(in 1h0m0s)",
	} {
		if got := moment(now.Add(away), now); !strings.HasSuffix(got, want) {
			t.Errorf("%v: %s", away, got)
		}
	}
}

// A table that was created is told also where it did not get its TTL, or nobody waited for it.
func TestATableThatIsHalfCreated(t *testing.T) {
	n := newNight(t)
	whole := n.endpoint
	n.between(func(operation string) bool { return operation != "UpdateTimeToLive" }, nil)
	n.says("table create bills --partition id --yes", exitFailed, "table describe", "not now")
	n.endpoint = whole
	n.says("table describe bills", exitOK, "off")

	ctx, interrupt := context.WithCancel(t.Context())
	n.between(nil, func(r *http.Request, operation string) {
		if operation == "CreateTable" {
			interrupt()
			<-r.Context().Done() // the tool has left
		}
	})
	var out, errs bytes.Buffer
	code := run(ctx, strings.Fields("table create carts --partition id --yes --endpoint "+n.endpoint), &console{out: &out, err: &errs, width: plainWidth}, &fake{})
	if code != exitFailed || !strings.Contains(errs.String(), "table describe") {
		t.Errorf("code %d, %s, %s", code, &out, &errs)
	}
}
