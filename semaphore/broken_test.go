package semaphore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// One thing that is broken must not stop the others: rows that nobody can read,
// values and handlers that panic, handlers that hang.

type attrs = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// logged is a logger and what it was given.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) has(t *testing.T, messages ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range messages {
		if !strings.Contains(l.text.String(), m) {
			t.Errorf("the log has no %q:\n%s", m, l.text.String())
		}
	}
}

func (l *logged) config() repo.TableConfig {
	return repo.TableConfig{Logger: slog.New(slog.NewTextHandler(l, nil))}
}

// put writes a row as somebody would by hand.
func (b bench) put(t testing.TB, row attrs) {
	t.Helper()
	rig.Must(b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: row}))(t)
}

// shardOf finds the partition of a resource's row.
func (b bench) shardOf(t testing.TB, resource string) string {
	t.Helper()
	out := rig.Must(b.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &b.Table}))(t)
	for _, row := range out.Items {
		pk := row["pk"].(*types.AttributeValueMemberS).Value
		if strings.HasPrefix(pk, "RESOURCE#") && row["sk"].(*types.AttributeValueMemberS).Value == resource {
			return pk
		}
	}
	t.Fatalf("no row of resource %q", resource)
	return ""
}

func TestAResourceThatCannotBeReadIsLeftAside(t *testing.T) {
	b := newBench(t)
	var log logged
	s := b.open(t, semaphore.Config{Table: log.config()})
	enqueue(t, s, "bad", 1)
	enqueue(t, s, "good", 3)
	b.put(t, attrs{"pk": str(b.shardOf(t, "bad")), "sk": str("bad"), "queued": str("many")})
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	var done atomic.Int32
	rig.Is(t, s.Run(ctx, func(_ context.Context, j *semaphore.Job[deploy]) error {
		if j.Resource() != "good" {
			t.Errorf("a job of %q", j.Resource())
		}
		if done.Add(1) == 3 {
			cancel()
		}
		return nil
	}))
	if done.Load() != 3 {
		t.Errorf("%d jobs done", done.Load())
	}
	log.has(t, "dynahold: a resource is left aside for a while", "resource=bad")
	names := map[string]bool{}
	for r, err := range s.Resources(t.Context()) { // which goes on, too
		if names[r.Name] = true; (err != nil) != (r.Name == "bad") || err != nil && !errors.Is(err, repo.ErrSchema) {
			t.Errorf("%q: error %v", r.Name, err)
		}
	}
	if len(names) != 2 {
		t.Errorf("resources %v", names)
	}
}

func TestAJobThatCannotBeReadDoesNotBlockItsLine(t *testing.T) {
	for name, row := range map[string]attrs{
		"attempts are a text":    {"id": str("x"), "job": str("{}"), "state": str("queued"), "attempts": str("none")},
		"attempts are negative":  {"id": str("x"), "job": str("{}"), "state": str("queued"), "attempts": num("-5")},
		"attempts are extreme":   {"id": str("x"), "job": str("{}"), "state": str("queued"), "attempts": num("9223372036854775807")},
		"no id":                  {"job": str("{}"), "state": str("queued"), "attempts": num("0")},
		"due at a text":          {"id": str("x"), "job": str("{}"), "state": str("queued"), "attempts": num("0"), "notBefore": str("soon")},
		"the value is a number":  {"id": str("x"), "job": num("1"), "state": str("queued"), "attempts": num("4")},
		"nothing of ours at all": {"colour": str("blue")},
		"another state":          {"id": str("x"), "job": str("{}"), "state": str("paused"), "attempts": num("0")},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var log logged
			s := b.open(t, semaphore.Config{Table: log.config()})
			enqueue(t, s, "staging", 2)
			if text := row["state"]; text != nil && text.(*types.AttributeValueMemberS).Value == "queued" {
				rig.Must(b.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &b.Table, Key: attrs{"pk": str(b.shardOf(t, "staging")), "sk": str("staging")},
					UpdateExpression: ptr("ADD queued :one"), ExpressionAttributeValues: attrs{":one": num("1")}}))(t)
			}
			whole := attrs{"pk": str("JOBS#staging"), "sk": str("0")}
			for name, v := range row {
				whole[name] = v
			}
			b.put(t, whole)
			for want := range 2 {
				j := rig.Must(s.Next(t.Context(), "staging"))(t)
				if j.Value().N != want {
					t.Errorf("job %d, want %d", j.Value().N, want)
				}
				rig.Is(t, j.Done(t.Context()))
			}
			log.has(t, "cannot be read", "resource=staging")
			if _, counted := row["state"]; counted && name != "another state" {
				wantResource(t, s, "staging", 0, 0, 1)
				audit(t, s)
				return
			}
			if len(b.Item(t, attrs{"pk": str("JOBS#staging"), "sk": str("0")})) == 0 {
				t.Error("a row that is not ours has gone")
			}
			wantResource(t, s, "staging", 0, 0, 0)
			for _, err := range s.Audit(t.Context()) { // which ends
				_ = err
			}
		})
	}
}

func ptr[V any](v V) *V { return &v }

// A row that says that it runs and not until when cannot be renewed: it is
// given up when it was seen for a lease.
func TestARunningJobThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open(t, semaphore.Config{Lease: time.Second, ClockSkew: -1})
	enqueue(t, s, "staging", 2)
	dead := rig.Must(b.open(t, semaphore.Config{Lease: time.Hour}).Next(t.Context(), "staging"))(t)
	row := b.jobRow(t, dead.ID())
	row["until"] = str("later")
	b.put(t, row)
	j := due(t, s, "staging")
	if j.Value().N != 1 {
		t.Errorf("job %d", j.Value().N)
	}
	rig.Is(t, j.Done(t.Context()))
	wantResource(t, s, "staging", 0, 0, 1)
	audit(t, s)
	rig.Is(t, dead.Done(t.Context()), repo.ErrLockLost)
}

// jobRow is the row of a job of "staging" in its first place.
func (b bench) jobRow(t testing.TB, id string) attrs {
	t.Helper()
	return b.Item(t, attrs{"pk": str("JOBS#staging"), "sk": str(id)})
}

// Numbers that nobody can have counted let nobody in.
func TestNumbersThatNobodyCounted(t *testing.T) {
	for name, change := range map[string]attrs{
		"running is negative":     {"running": num("-3")},
		"running is less":         {"running": num("0")},
		"running is a text":       {"running": str("0")},
		"the limit is extreme":    {"limit": num("99999999999999999999")},
		"the limit is negative":   {"limit": num("-1")},
		"the token is negative":   {"token": num("-7")},
		"the token is the last":   {"token": num("9223372036854775807")},
		"the token is beyond it":  {"token": num("99999999999999999999")},
		"the token is a fraction": {"token": num("0.5")},
	} {
		for _, limit := range []int{0, 1} {
			b := newBench(t)
			s := b.open(t, semaphore.Config{Limit: limit})
			enqueue(t, s, "staging", 1)
			p := rig.Must(s.TryAcquire(t.Context(), "staging"))(t)
			editRow(t, b, attrs{"pk": str(b.shardOf(t, "staging")), "sk": str("staging")}, change)
			if q, err := s.TryAcquire(t.Context(), "staging"); err == nil {
				t.Errorf("%s, limit %d: a permit (token %d) beside one with token %d", name, limit, q.Token(), p.Token())
			}
			if j, err := s.Next(t.Context(), "staging"); err == nil {
				t.Errorf("%s, limit %d: a job (token %d) beside the permit", name, limit, j.Token())
			}
		}
	}
}

func editRow(t *testing.T, b bench, key, change attrs) {
	t.Helper()
	row := b.Item(t, key)
	for name, v := range change {
		row[name] = v
	}
	b.put(t, row)
}

type explosive struct{ N int }

func (e *explosive) UnmarshalJSON(text []byte) error {
	type plain explosive
	if err := json.Unmarshal(text, (*plain)(e)); err != nil {
		return err
	}
	switch e.N {
	case 0:
		panic("bad")
	case 1:
		runtime.Goexit()
	case 2:
		return (*nilError)(nil)
	}
	return nil
}

// nilError is an error whose method cannot be called on nil.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// What panics while it is decoded fails its job, and the others go on.
func TestAValueThatPanics(t *testing.T) {
	for _, run := range []bool{false, true} {
		b := newBench(t)
		var log logged
		s := rig.Must(semaphore.New[explosive](b.Client, b.Table, semaphore.Config{Workers: 1, Retry: semaphore.Retry{Attempts: 1}, Table: log.config()}))(t)
		for n := range 4 {
			put(t, s, "staging", explosive{n})
		}
		if run {
			ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
			rig.Is(t, s.Run(ctx, func(_ context.Context, j *semaphore.Job[explosive]) error {
				if j.Value().N != 3 {
					t.Errorf("value %d", j.Value().N)
				}
				cancel()
				return nil
			}))
			cancel()
		} else {
			j := rig.Must(s.Next(t.Context(), "staging"))(t)
			if j.Value().N != 3 {
				t.Errorf("value %d", j.Value().N)
			}
			rig.Is(t, j.Done(t.Context()))
		}
		r := rig.Must(s.Resource(t.Context(), "staging"))(t)
		if r.Dead != 3 || r.Queued != 0 || r.Running != 0 {
			t.Errorf("%+v", r)
		}
		n := 0
		for d, err := range s.Dead(t.Context(), "staging") { // decodes them, too
			n++
			rig.Is(t, err, repo.ErrSchema)
			if d.Error == "" {
				t.Error("a dead letter without a reason")
			}
		}
		if n != 3 {
			t.Errorf("%d dead letters", n)
		}
		log.has(t, "dynahold: a job's value cannot be read")
	}
}

// An error that is a nil pointer, or whose text is no text, fails its job.
func TestErrorsThatPanic(t *testing.T) {
	for name, bad := range map[string]error{"nil pointer": (*nilError)(nil), "not UTF-8": errors.New("\xff\xfe bad"), "cut in a character": errors.New(strings.Repeat("ü", 999) + "x")} {
		b := newBench(t)
		s := b.open(t, semaphore.Config{Workers: 1, Retry: semaphore.Retry{Attempts: 1}})
		enqueue(t, s, "staging", 2)
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		rig.Is(t, s.Run(ctx, func(_ context.Context, j *semaphore.Job[deploy]) error {
			if j.Value().N == 0 {
				return bad
			}
			cancel()
			return nil
		}))
		cancel()
		wantResource(t, s, "staging", 0, 0, 1)
		enqueue(t, s, "staging", 1)
		rig.Is(t, rig.Must(s.Next(t.Context(), "staging"))(t).Fail(t.Context(), bad))
		wantResource(t, s, "staging", 0, 0, 2)
		for d, err := range s.Dead(t.Context(), "staging") {
			rig.Is(t, err)
			if d.Error == "" {
				t.Errorf("%s: a dead letter without a reason", name)
			}
		}
		audit(t, s)
	}
}

// A handler that hangs is not renewed for ever, and neither its worker nor Run
// wait for it.
func TestAHandlerThatHangs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var log logged
	s := b.open(t, semaphore.Config{Workers: 1, Lease: time.Second, ClockSkew: -1, HandlerTimeout: 50 * time.Millisecond, Retry: semaphore.Retry{Attempts: 2, Min: time.Millisecond},
		Wait: repo.Wait{Max: 50 * time.Millisecond}, Poll: 100 * time.Millisecond, Table: log.config()})
	rig.Is(t, s.SetLimit(t.Context(), "staging", 2))
	enqueue(t, s, "staging", 2)
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	release := make(chan struct{})
	defer close(release)
	causes := make(chan error, 10)
	var obedient atomic.Int32
	rig.Is(t, s.Run(ctx, func(held context.Context, j *semaphore.Job[deploy]) error {
		if j.Value().N == 0 {
			<-held.Done()
			causes <- context.Cause(held)
			if j.Attempt() == 2 {
				cancel()
			}
			<-release // deaf
			return nil
		}
		<-held.Done() // one that obeys fails
		obedient.Add(1)
		return context.Cause(held)
	}))
	rig.Is(t, <-causes, context.DeadlineExceeded)
	rig.Is(t, <-causes, context.DeadlineExceeded)
	if obedient.Load() == 0 {
		t.Error("the other job was not handled")
	}
	log.has(t, "dynahold: a handler does not return in time")
}

type contextKey struct{}

// Handlers see the values of Run's context.
func TestHandlersHaveTheValuesOfTheContext(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{HandlerTimeout: time.Hour})
	enqueue(t, s, "staging", 1)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "trace"))
	defer cancel()
	rig.Is(t, s.Run(ctx, func(held context.Context, _ *semaphore.Job[deploy]) error {
		if held.Value(contextKey{}) != "trace" {
			t.Error("the value is missing")
		}
		cancel()
		return nil
	}))
}

// While a version with another limit is rolled out, each goes by its own, and
// nobody is stopped.
func TestProgramsWithDifferentLimits(t *testing.T) {
	b := newBench(t)
	two, three, none := b.open(t, semaphore.Config{Limit: 2}), b.open(t, semaphore.Config{Limit: 3}), b.open(t, semaphore.Config{})
	enqueue(t, two, "staging", 4)
	enqueue(t, three, "staging", 4)
	start := func(s *sem) *semaphore.Job[deploy] { t.Helper(); return rig.Must(s.Next(t.Context(), "staging"))(t) }
	busy := func(s *sem) {
		t.Helper()
		_, err := s.Next(t.Context(), "staging")
		rig.Is(t, err, semaphore.ErrBusy)
		_, err = s.TryAcquire(t.Context(), "staging")
		rig.Is(t, err, semaphore.ErrBusy)
	}
	jobs := []*semaphore.Job[deploy]{start(two), start(two)}
	busy(two)
	jobs = append(jobs, start(three))
	busy(three)
	busy(two)
	rig.Is(t, jobs[0].Done(t.Context()))
	busy(two)
	p := rig.Must(three.TryAcquire(t.Context(), "staging"))(t)
	busy(three)
	busy(none) // the row shows the limit that was used last
	rig.Is(t, p.Release(t.Context()))
	jobs = append(jobs, start(none))
	rig.Is(t, none.SetLimit(t.Context(), "staging", 1)) // an operator's word is for all
	for _, j := range jobs[1:] {
		for _, s := range []*sem{two, three, none} {
			busy(s)
		}
		rig.Is(t, j.Done(t.Context()))
	}
	rig.Is(t, start(three).Done(t.Context()))
	audit(t, two)

	// The same with permits alone: the row learns the limit of who uses it.
	q := rig.Must(two.TryAcquire(t.Context(), "printer"))(t)
	q2 := rig.Must(three.TryAcquire(t.Context(), "printer"))(t)
	q3 := rig.Must(three.TryAcquire(t.Context(), "printer"))(t)
	if r := rig.Must(none.Resource(t.Context(), "printer"))(t); r.Limit != 3 || r.Running != 3 {
		t.Errorf("%+v", r)
	}
	for _, p := range []*semaphore.Permit{q, q2, q3} {
		rig.Is(t, p.Release(t.Context()))
	}
	audit(t, two)
}

func TestNamesThatCollide(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"queued", "running", "limit", "token", "until", "notBefore", "id", "job", "p_x", "swept"} {
		_, err := semaphore.New[int](b.Client, b.Table, semaphore.Config{Table: repo.TableConfig{Attributes: repo.Attributes{TTL: name}}})
		rig.Is(t, err, repo.ErrConfig)
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("error %v does not name %q", err, name)
		}
	}
}
