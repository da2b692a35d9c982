package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// piped is the tool, of which somebody reads line by line.
type piped struct {
	*testing.T
	lines *bufio.Scanner
	stop  func()
	ended chan int
	errs  *bytes.Buffer
}

func (n *night) pipe(line string) *piped {
	n.Helper()
	out, in := io.Pipe()
	ctx, stop := context.WithCancel(n.Context())
	p := &piped{T: n.T, lines: bufio.NewScanner(out), stop: stop, ended: make(chan int, 1), errs: new(bytes.Buffer)}
	go func() {
		code := run(ctx, append(strings.Fields(line), "--endpoint", n.endpoint), &console{out: in, err: p.errs, width: plainWidth}, &fake{})
		_ = in.Close()
		p.ended <- code
	}()
	n.Cleanup(stop)
	return p
}

// read demands words in the next line.
func (p *piped) read(words ...string) string {
	p.Helper()
	if !p.lines.Scan() {
		p.Fatalf("no line with %q: %v", words, p.lines.Err())
	}
	for _, w := range words {
		if !strings.Contains(p.lines.Text(), w) {
			p.Errorf("%q lacks %q", p.lines.Text(), w)
		}
	}
	if strings.Contains(p.lines.Text(), "\x1b") {
		p.Errorf("%q is for a terminal", p.lines.Text())
	}
	return p.lines.Text()
}

// end ends the tool and demands its exit code. rest are words of the lines after that.
func (p *piped) end(code int, rest ...string) {
	p.Helper()
	p.stop()
	for _, words := range rest {
		p.read(words)
	}
	select {
	case got := <-p.ended:
		if got != code {
			p.Errorf("code %d, want %d: %s", got, code, p.errs)
		}
	case <-time.After(time.Minute):
		p.Fatal("it does not end")
	}
}

// In a pipe the changes come as lines.
func TestWatchInAPipe(t *testing.T) {
	n := newNight(t)
	folder := t.TempDir()
	n.says("locks watch locks --every 1ms", exitUsage, "--every")
	n.says("locks watch nowhere", exitNothing)
	n.says("locks watch locks --record "+folder, exitUsage, "--record", folder)
	n.says("locks watch locks --record=", exitUsage, "--record needs a file")
	w := n.pipe("locks watch locks --every 100ms")
	w.read(" held ", "nightly-report", "batch-2", fmt.Sprint(n.report.Token()))
	n.is(n.report.Unlock(t.Context()))
	w.read(" ended ", "nightly-report", "batch-2")
	w.end(exitOK)

	w = n.pipe("locks watch orders --every 100ms")
	w.read(" held ")
	_, err := n.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &[]string{"orders"}[0]})
	n.is(err)
	if w.lines.Scan() {
		t.Errorf("of a table that is gone: %s", w.lines.Text())
	}
	w.end(exitNothing)
}

// The rest of a table that a look did not reach has not ended: such a look has seen
// nothing, and the next one that sees all says so.
func TestALookThatFailsHasSeenNothing(t *testing.T) {
	n := newNight(t)
	_, err := n.till("till-2").Upsert(t.Context(), repo.Key{Partition: "1002"}, func(context.Context, *order) error { return nil })
	n.is(err)
	_, err = n.till("till-2").Acquire(t.Context(), repo.Key{Partition: "1002"})
	n.is(err)
	var refuse atomic.Bool
	refused := make(chan bool, 1)
	n.endpoint = n.proxy(func(request map[string]any) bool {
		request["Limit"] = 1 // a page for each item
		if request["ExclusiveStartKey"] == nil || !refuse.Load() {
			return true
		}
		select {
		case refused <- true:
		default:
		}
		return false
	})
	w := n.pipe("locks watch orders --every 100ms -o json")
	w.read("watching")
	w.read("held", "1001")
	w.read("held", "1002")
	refuse.Store(true)
	<-refused
	refuse.Store(false)
	w.read(`"event":"looked"`, `"before":`)
	w.end(exitOK, "stopped")
	if errs := w.errs.String(); strings.Count(errs, "a look failed") != 1 || !strings.Contains(errs, "looks succeed again") {
		t.Errorf("faults: %s", errs)
	}
}

// proxy is an endpoint before the engine. Each scan goes by pass, which may change it, and
// is refused where that returns false.
func (n *night) proxy(pass func(request map[string]any) bool) string {
	n.Helper()
	target, err := url.Parse(n.endpoint)
	n.is(err)
	forward := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".Scan") {
			var request map[string]any
			if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
				n.Error(err)
			}
			if !pass(request) {
				refuse(w)
				return
			}
			body, err := json.Marshal(request)
			if err != nil {
				n.Error(err)
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		forward.ServeHTTP(w, r)
	}))
	n.Cleanup(server.Close)
	return server.URL
}

// refuse answers as a DynamoDB that does not let the caller do this.
func refuse(w http.ResponseWriter) {
	const refusal = `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"not now"}`
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE([]byte(refusal))))
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, refusal)
}

// What a watch writes down becomes a timeline: who lost a lock to whom is told by the
// lock itself.
func TestARecordBecomesATimeline(t *testing.T) {
	n := newNight(t)
	const record = "night.jsonl"
	ctx, document := t.Context(), n.absolute(walkPage)
	t.Chdir(t.TempDir())
	token := fmt.Sprint(n.order.Token())
	w := n.pipe("locks watch orders --every 100ms -o json --record " + record)
	w.read(`"event":"watching"`, `"table":"orders"`, `"every_ms":100`)
	w.read(`"event":"held"`, `"holder":"till-1"`, token)
	n.expire("orders", "1001")
	w.read(`"event":"expired"`, `"holder":"till-1"`, `"before":`)
	second := n.till("till-2")
	_, err := second.Acquire(ctx, repo.Key{Partition: "1001"})
	n.is(err)
	w.read(`"event":"ended"`, `"holder":"till-1"`)
	w.read(`"event":"taken"`, `"holder":"till-2"`, `"lost":`+token)
	w.end(exitOK, `"event":"stopped"`)
	tell := "locks timeline " + record
	_, out, _ := call(ctx, &fake{}, strings.Fields(tell)...)
	n.shown(document, "$ dynahold "+tell+"\n", out)

	w = n.pipe("locks watch locks --every 100ms --record " + record) // appends
	w.read(" held ", "nightly-report")
	n.says("locks break locks nightly-report --yes --token "+n.field("locks show locks nightly-report", "token"), exitOK)
	w.read(" ended ", "batch-2")
	locks, err := mutex.New(n.client, "locks", mutex.Config{Owner: "batch-3"})
	n.is(err)
	_, err = locks.Lock(ctx, "nightly-report")
	n.is(err)
	w.read(" taken ", "batch-3")
	w.end(exitOK)

	offline := func(line string, code int, words ...string) {
		t.Helper()
		got, out, errs := call(ctx, &fake{}, strings.Fields(line)...)
		if got != code {
			t.Errorf("%s: code %d, want %d\n%s%s", line, got, code, out, errs)
		}
		for _, word := range words {
			if !strings.Contains(out+errs, word) {
				t.Errorf("%s does not say %q:\n%s%s", line, word, out, errs)
			}
		}
	}
	offline(tell, exitOK, "orders: 1001", "till-1", token, "taken over after its lease, then held by till-2", "held at the last look", "locks: nightly-report", "batch-2", "broken before the end of its lease, then held by batch-3", "a look every 100ms")
	offline(tell+" --lock night*", exitOK, "batch-3")
	offline(tell+" --lock nothing", exitOK, "nobody held a lock")
	offline(tell+" -o json", exitOK, `"end": "taken_over"`, `"lost_to": "till-2"`, `"first_seen": "`, `"watched": [`)
	page := filepath.Join(t.TempDir(), "night.html")
	offline(tell+" --html "+page, exitOK, "page: "+page)
	text, err := os.ReadFile(page)
	n.is(err)
	for _, want := range []string{"nightly-report", "till-2", "2 of them lost or overdue", "taken over after its lease"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}

	empty := filepath.Join(t.TempDir(), "empty")
	n.is(os.WriteFile(empty, nil, 0o600))
	offline("locks timeline", exitUsage, "<file>")
	offline("locks timeline "+record+".not", exitNothing, "there is no file")
	offline("locks timeline "+empty, exitNothing, "no look")
	offline("locks timeline "+page, exitFailed, "night.html, line 1 is no event of locks watch")
	offline(tell+" --html=", exitUsage, "--html needs a file")
	offline(tell+" --html /no/such/folder/x.html", exitUsage, "there is no folder")
	offline(tell+" --from yesterday", exitUsage, "--from")
	offline(tell+" --from 2026-01-02T00:00:00Z --to 2026-01-01T00:00:00Z", exitUsage, "--to must be after --from")
	offline(tell+" --to 2001-01-01T00:00:00Z", exitUsage, "the record is from")
	offline(tell+" --lock [", exitUsage, "is no pattern")
}

func (n *night) absolute(path string) string {
	n.Helper()
	path, err := filepath.Abs(path)
	n.is(err)
	return path
}

// What differs from one timeline to another.
var (
	lasted = regexp.MustCompile(`less than \S+|\S+ to \S+s\b|\S+ or more|seen once`)
	slow   = regexp.MustCompile(`; nobody looked .*`) // on a busy machine
)

// shown demands that a document shows what a command prints. With -update it does after.
func (n *night) shown(path, line, out string) {
	n.Helper()
	text, err := os.ReadFile(path)
	n.is(err)
	before, block, is := strings.Cut(string(text), line)
	block, after, _ := strings.Cut(block, "```")
	if !is {
		n.Fatalf("%s does not show %s", path, line)
	}
	if *update {
		n.is(os.WriteFile(path, []byte(before+line+slow.ReplaceAllString(out, "")+"```"+after), 0o600))
		return
	}
	short := func(s string) string { return shape(slow.ReplaceAllString(lasted.ReplaceAllString(s, "<lasted>"), "")) }
	if short(out) != short(block) {
		n.Errorf("%s prints\n%s\nand the page shows\n%s\n(go test -run Timeline . -update)", line, short(out), short(block))
	}
}

// till changes orders in another process.
func (n *night) till(owner string) *lockedread.Locker[order] {
	n.Helper()
	table, err := repo.NewTable[order](n.client, "orders", repo.TableConfig{})
	n.is(err)
	items, err := lockedread.New(table, lockedread.Config{Owner: owner, Lease: time.Hour})
	n.is(err)
	return items
}

// expire lets a lease be over.
func (n *night) expire(table, id string) {
	n.Helper()
	set := "SET lockTime = :past"
	_, err := n.client.UpdateItem(n.Context(), &dynamodb.UpdateItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{"id": word(id)}, UpdateExpression: &set,
		ExpressionAttributeValues: map[string]types.AttributeValue{":past": &types.AttributeValueMemberN{Value: "1"}},
	})
	n.is(err)
}
