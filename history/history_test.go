package history_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.opentelemetry.io/otel/trace"

	"github.com/dynahold/dynahold/history"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

type order struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Version int64  `dynamodbav:"version" repo:"version"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
	Total   int    `dynamodbav:"total"`
}

func key(id string) repo.Key { return repo.Key{Partition: id} }

func plus(_ context.Context, o *order) error { o.Total++; return nil }

// shop is a program whose calls are written down.
type shop struct {
	*testing.T
	client *dynamodb.Client
	cfg    repo.TableConfig
	tracer trace.TracerProvider
	table  *repo.Table[order]
}

func open(t *testing.T, record *history.Recorder) *shop {
	t.Helper()
	engine, err := localdb.Start(t.Context(), localdb.Config{Options: []func(*dynamodb.Options){record.Watch}})
	s := &shop{T: t}
	s.is(err)
	t.Cleanup(func() { _ = engine.Close() })
	s.client, s.tracer = engine.Client(), record.Tracing(nil)
	s.cfg = repo.TableConfig{TracerProvider: s.tracer}
	s.table, err = repo.NewTable[order](s.client, "orders", s.cfg)
	s.is(err)
	s.is(s.table.EnsureTable(t.Context()))
	return s
}

func (s *shop) is(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// hexOf is the newest id of a list.
func hexOf(v types.AttributeValue) string {
	return hex.EncodeToString(v.(*types.AttributeValueMemberB).Value[:8])
}

func read(t *testing.T, record string) (calls []history.Call) {
	t.Helper()
	for line := range strings.Lines(record) {
		var c history.Call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	return calls
}

// Each way to write an item is one line, with the id that stands on the item.
func TestEachWriteIsALine(t *testing.T) {
	var out bytes.Buffer
	record := history.New(&out, history.Config{Keys: true})
	s := open(t, record)
	ctx := t.Context()
	versions, err := optimistic.New(s.table, optimistic.Config{})
	s.is(err)
	locks, err := pessimistic.New(s.table, pessimistic.Config{})
	s.is(err)
	events, err := nolock.New(s.table, nolock.Config{})
	s.is(err)
	ids := map[string]string{} // of the latest write, by call
	note := func(call, id string) {
		t.Helper()
		got, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.table.Name()), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}})
		s.is(err)
		name := "writers"
		if call == "nolock.Put" {
			name = "writersUnread"
		}
		ids[call] = hexOf(got.Item[name])
	}
	_, err = versions.Create(ctx, order{ID: "a", At: 1})
	s.is(err)
	note("optimistic.Create", "a")
	_, err = versions.Update(ctx, key("a"), plus)
	s.is(err)
	note("optimistic.Update", "a")
	_, err = locks.Update(ctx, key("a"), plus)
	s.is(err)
	note("pessimistic.Update", "a")
	s.is(events.Put(ctx, order{ID: "a", At: 5}))
	note("nolock.Put", "a")
	transactions := txn.Config{TracerProvider: s.tracer}
	s.is(transactions.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		if _, err := versions.In(tx).Update(ctx, key("a"), plus); err != nil {
			return err
		}
		_, err := locks.In(tx).Upsert(ctx, key("b"), plus)
		return err
	}))
	note("txn.Run", "b")
	s.is(record.Close())
	calls := read(t, out.String())
	if len(calls) != len(ids) {
		t.Errorf("%d calls for %d:\n%s", len(calls), len(ids), out.String())
	}
	for _, c := range calls {
		if c.Verdict != history.Done || len(c.Writes) == 0 || c.Writes[0].ID != ids[c.Call] || c.Writes[0].Answer != history.Applied || c.Writes[0].Table != "orders" {
			t.Errorf("%s, on the item %s: %+v", c.Call, ids[c.Call], c)
		}
		if c.Writes[0].Name != `id="a"` && c.Call != "txn.Run" || c.Ended.Before(c.Began) {
			t.Errorf("%+v", c)
		}
		if c.Call == "txn.Run" && (len(c.Writes) != 2 || c.Writes[0].ID != c.Writes[1].ID) {
			t.Errorf("a transaction of two: %+v", c.Writes)
		}
	}
}

// What answers in the service's place has written nothing, whatever it says.
func TestAnAnswerInTheServicesPlace(t *testing.T) {
	var out bytes.Buffer
	record := history.New(&out, history.Config{})
	s := open(t, record)
	o := s.client.Options()
	sent := 0
	o.HTTPClient = fault.New(o.HTTPClient.(fault.Doer), fault.Config{Script: func(op string, _ int, _ []byte) fault.Kind {
		if op != "UpdateItem" {
			return fault.None
		}
		if sent++; sent == 2 {
			return fault.Empty
		}
		return fault.None
	}})
	table, err := repo.NewTable[order](dynamodb.New(o), "orders", s.cfg)
	s.is(err)
	versions, err := optimistic.New(table, optimistic.Config{})
	s.is(err)
	for range 2 {
		_, err = versions.Upsert(t.Context(), key("a"), plus)
		s.is(err)
	}
	s.is(record.Close())
	calls := read(t, out.String())
	last := calls[len(calls)-1]
	if n := len(last.Writes); n < 2 || last.Writes[0].Answer != history.None || last.Writes[n-1].Answer != history.Applied {
		t.Errorf("%+v", last.Writes)
	}
}

func TestARefusedCallIsToldAsRefused(t *testing.T) {
	var out bytes.Buffer
	record := history.New(&out, history.Config{})
	s := open(t, record)
	versions, err := optimistic.New(s.table, optimistic.Config{})
	s.is(err)
	first, err := versions.Create(t.Context(), order{ID: "a"})
	s.is(err)
	_, err = versions.Save(t.Context(), first)
	s.is(err)
	if _, err := versions.Save(t.Context(), first); !errors.Is(err, repo.ErrConflict) {
		t.Fatal(err)
	}
	s.is(record.Close())
	calls := read(t, out.String())
	last := calls[len(calls)-1]
	if last.Verdict != history.Refused || last.Error != "conflict" || len(last.Writes) != 1 || last.Writes[0].Answer != history.Failed || last.Writes[0].Name != "" {
		t.Errorf("%+v", last)
	}
	if strings.Contains(out.String(), `"a"`) {
		t.Errorf("the key is written down:\n%s", out.String())
	}
}

// stuck is a writer that does not come back before it is let go.
type stuck struct {
	let    chan struct{}
	once   sync.Once
	waits  chan struct{}
	lines  bytes.Buffer
	failed error
}

func (s *stuck) Write(line []byte) (int, error) {
	s.once.Do(func() { close(s.waits) })
	<-s.let
	if s.failed != nil {
		return 0, s.failed
	}
	return s.lines.Write(line)
}

// Calls do not wait for who writes their record; what is left out is counted.
func TestNobodyWaitsForTheRecord(t *testing.T) {
	w := &stuck{let: make(chan struct{}), waits: make(chan struct{})}
	record := history.New(w, history.Config{Buffer: 2})
	s := open(t, record)
	versions, err := optimistic.New(s.table, optimistic.Config{})
	s.is(err)
	_, err = versions.Create(t.Context(), order{ID: "a"})
	s.is(err)
	<-w.waits
	for range 9 {
		_, err := versions.Update(t.Context(), key("a"), plus)
		s.is(err)
	}
	close(w.let)
	s.is(record.Close())
	lines, dropped := 0, 0
	for line := range strings.Lines(w.lines.String()) {
		var d struct{ Dropped int }
		s.is(json.Unmarshal([]byte(line), &d))
		if dropped += d.Dropped; d.Dropped == 0 {
			lines++
		}
	}
	if lines != 3 || dropped != 7 {
		t.Errorf("%d lines, %d dropped:\n%s", lines, dropped, w.lines.String())
	}
}

func TestARecordThatCannotBeWritten(t *testing.T) {
	w := &stuck{let: make(chan struct{}), waits: make(chan struct{}), failed: io.ErrShortWrite}
	close(w.let)
	record := history.New(w, history.Config{})
	s := open(t, record)
	versions, err := optimistic.New(s.table, optimistic.Config{})
	s.is(err)
	for _, id := range []string{"a", "b"} {
		_, err = versions.Create(t.Context(), order{ID: id})
		s.is(err)
	}
	if err := record.Close(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%v", err)
	}
	if err := record.Close(); err == nil {
		t.Error("closed twice")
	}
	_, err = versions.Create(t.Context(), order{ID: "c"}) // goes on without the record
	s.is(err)
}

// A number is the same key in other digits; no two keys have one hash.
func TestKeyHash(t *testing.T) {
	n := func(digits string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"id": &types.AttributeValueMemberN{Value: digits}}
	}
	text := func(name, value string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{name: &types.AttributeValueMemberS{Value: value}}
	}
	if history.KeyHash(n("10")) != history.KeyHash(n("1.0e1")) {
		t.Error("10 and 1.0e1 are two keys")
	}
	seen := map[string]bool{}
	for _, k := range []map[string]types.AttributeValue{n("10"), n("1"), text("id", "10"), text("id", "1"), text("i", "d=\"1\""), {"id": &types.AttributeValueMemberB{Value: []byte("10")}}} {
		seen[history.KeyHash(k)] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d hashes of 6 keys", len(seen))
	}
}
