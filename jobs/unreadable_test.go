package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
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
	s := b.open(t, jobs.Config{Table: log.config()})
	enqueue(t, s, "bad", 1)
	enqueue(t, s, "good", 3)
	b.put(t, attrs{"pk": str(b.shardOf(t, "bad")), "sk": str("bad"), "queued": str("many")})
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	var done atomic.Int32
	rig.Is(t, s.Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error {
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

// Nor does it stop them where the time of its jobs has come: of more than one look takes, in
// front of theirs.
func TestAResourceThatCannotBeReadHasJobsThatAreDue(t *testing.T) {
	b := newBench(t)
	good := "good"
	for n := 0; resources.ShardOf(good) != resources.ShardOf("bad"); n++ {
		good = fmt.Sprint("good ", n)
	}
	at, producer := time.Now().Add(300*time.Millisecond), b.open(t, jobs.Config{})
	rig.Must(producer.EnqueueMany(t.Context(), "bad", make([]deploy, 120), jobs.At(at)))(t)
	put(t, producer, good, deploy{N: 1}, jobs.At(at.Add(time.Millisecond)))
	put(t, producer, good, deploy{N: 2}, jobs.At(at.Add(time.Millisecond)))
	b.put(t, attrs{"pk": str(b.shardOf(t, "bad")), "sk": str("bad"), "queued": str("many")})
	time.Sleep(time.Until(at.Add(10 * time.Millisecond)))
	rig.Is(t, rig.Must(b.open(t, jobs.Config{}).Next(t.Context(), good))(t).Done(t.Context()))
	var log logged
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	rig.Is(t, b.open(t, jobs.Config{Poll: 10 * time.Millisecond, Table: log.config()}).Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error {
		rig.Equal(t, j.Resource(), good, "resource")
		cancel()
		return nil
	}))
	rig.Is(t, context.Cause(ctx), context.Canceled)
	log.has(t, "dynahold: a resource is left aside for a while", "resource=bad")
}

func TestAJobThatCannotBeReadDoesNotBlockItsLine(t *testing.T) {
	for name, row := range map[string]attrs{
		"attempts are a text":    {"id": str("x"), "job": str("{}"), "state": str("queued"), "attempts": str("none")},
		"attempts are negative":  {"id": str("x"), "job": str("{}"), "state": str("queued"), "attempts": num("-5")},
		"attempts are extreme":   {"id": str("x"), "job": str("{}"), "state": str("queued"), "attempts": num("9223372036854775807")},
		"no id":                  {"job": str("{}"), "state": str("queued"), "attempts": num("0")},
		"due at a text":          {"id": str("x"), "job": str("{}"), "state": str("queued"), "attempts": num("0"), "notBefore": str("soon")},
		"its own most attempts":  {"id": str("x"), "job": str("{}"), "state": str("queued"), "attempts": num("0"), "most": str("many"), "keep": num("60")},
		"the value is a number":  {"id": str("x"), "job": num("1"), "state": str("queued"), "attempts": num("4")},
		"nothing of ours at all": {"colour": str("blue")},
		"another state":          {"id": str("x"), "job": str("{}"), "state": str("paused"), "attempts": num("0")},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var log logged
			s := b.open(t, jobs.Config{Table: log.config()})
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
				for d, err := range s.Dead(t.Context(), "staging") {
					_ = err // it cannot be read
					rig.Is(t, s.Discard(t.Context(), "staging", d.ID))
				}
				wantResource(t, s, "staging", 0, 0, 0)
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
	s, pass := b.open(t, jobs.Config{}), passing()
	enqueue(t, s, "staging", 2)
	dead := rig.Must(b.open(t, jobs.Config{Lease: time.Hour}).Next(t.Context(), "staging"))(t)
	row := b.jobRow(t, dead.ID())
	row["until"] = str("later")
	b.put(t, row)
	_, err := s.Next(t.Context(), "staging")
	rig.Is(t, err, jobs.ErrBusy)
	pass(s)
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
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
			s := b.both(t, jobs.Config{Limit: limit})
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

type contextKey struct{}

// The end of a job whose resource has lost its row makes no new one, which would count
// below zero.
func TestTheEndOfAJobWithoutTheRowOfItsResource(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	put(t, s, "staging", deploy{"v", 1})
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	key := attrs{"pk": str(b.shardOf(t, "staging")), "sk": str("staging")}
	rig.Must(rig.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &b.Table, Key: key}))(t)
	rig.Is(t, j.Done(t.Context()), repo.ErrSchema)
	wantResource(t, s, "staging", 0, 0, 0)
}
