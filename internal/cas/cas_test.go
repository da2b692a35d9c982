package cas

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.Main(m) }

type tin struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Count   int    `dynamodbav:"count"`
	Label   string `dynamodbav:"label,omitempty"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

var (
	key = repo.Key{Partition: "beans"}
	raw = ddb.Item{"id": ddb.Text("beans")}
)

// shelf is a table with a client of its own, and how its items are changed.
type shelf struct {
	*rig.Rig
	others *dynamodb.Client
	table  *typed.Table
	policy Policy
}

func open(t *testing.T) *shelf {
	t.Helper()
	return openOver(t, rig.New(t), rig.Client())
}

func openOver(t *testing.T, r *rig.Rig, others *dynamodb.Client) *shelf {
	t.Helper()
	s := &shelf{Rig: r, others: others}
	table := rig.Must(repo.NewTable[tin](s.Client, s.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	s.table = typed.TableOf(table)
	settings := lock.Settings{Wait: repo.Wait{Min: time.Millisecond, Max: 5 * time.Millisecond, Attempts: 3}, Skew: time.Second, Clock: time.Now}
	s.policy = Policy{Settings: settings, Attempts: 4, Seen: []string{"version", "lockToken"}}
	return s
}

func (s *shelf) put(t *testing.T, item ddb.Item) {
	t.Helper()
	rig.Must(s.others.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.Table, Item: item}))(t)
}

// stored puts an item of version 3, with what else is given.
func (s *shelf) stored(t *testing.T, more ddb.Item) {
	t.Helper()
	item := ddb.Item{"id": ddb.Text("beans"), "count": ddb.Integer(1), "version": ddb.Integer(3)}
	for name, v := range more {
		item[name] = v
	}
	s.put(t, item)
}

func add(_ context.Context, b *tin) error { b.Count++; return nil }

// Whatever befalls the write, the change is in the item once, and what the call
// knows of the item is what is stored.
func TestRunThroughFaults(t *testing.T) {
	for _, kind := range []fault.Kind{fault.None, fault.DropRequest, fault.LoseResponse, fault.Resend, fault.Error500After, fault.Throttle} {
		s := open(t)
		s.stored(t, nil)
		s.Nth("UpdateItem", 0, kind)
		item, trace, err := Run(t.Context(), s.table, &s.policy, key, raw, typed.Request{Change: typed.ChangeOf(add), Keep: func() bool { return true }})
		rig.Is(t, err)
		stored := s.Item(t, raw)
		if got, _ := typed.As[tin](s.table.Decode(stored)); got.Count != 2 || got.Version != 4 || got != *item.(*tin) {
			t.Errorf("%v: returned %+v, stored %+v", kind, item, got)
		}
		if !ddb.EqualItems(trace.After, stored) {
			t.Errorf("%v: kept %v, stored %v", kind, trace.After, stored)
		}
	}
}

// Each row is what others do to the item between a read and its write, each time,
// and what comes of it.
func TestRunAgainstOthers(t *testing.T) {
	held := ddb.Item{"lockedBy": ddb.Text("joe"), "lockTime": ddb.Number(ddb.Seconds(time.Now().Add(time.Hour)))}
	over := ddb.Item{"lockedBy": ddb.Text("joe"), "lockTime": ddb.Number(ddb.Seconds(time.Now().Add(-time.Hour)))}
	for name, row := range map[string]struct {
		others    func(t *testing.T, s *shelf, nth int)
		failFast  bool
		want      error
		count     int // as stored then
		runs      int // of the change
		conflicts int
	}{
		"nobody":         {count: 2, runs: 1},
		"one write":      {count: 11, runs: 2, conflicts: 1, others: func(t *testing.T, s *shelf, n int) { s.writeOnce(t, n, 1) }},
		"writes, always": {want: repo.ErrConflict, count: 13, runs: 4, conflicts: 4, others: func(t *testing.T, s *shelf, n int) { s.writeOnce(t, n, 9) }},
		"gives way":      {failFast: true, want: lock.ErrContended, count: 10, runs: 1, conflicts: 1, others: func(t *testing.T, s *shelf, n int) { s.writeOnce(t, n, 1) }},
		"a lock":         {want: repo.ErrLocked, count: 1, runs: 1, others: func(t *testing.T, s *shelf, _ int) { s.stored(t, held) }},
		"a dead lock":    {count: 2, runs: 2, others: func(t *testing.T, s *shelf, n int) { s.storedAt(t, n, 1, over) }},
		"deleted":        {want: repo.ErrNotFound, count: -1, runs: 1, conflicts: 1, others: func(t *testing.T, s *shelf, _ int) { s.delete(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.stored(t, nil)
			s.policy.FailFast = row.failFast
			runs := 0
			_, trace, err := Run(t.Context(), s.table, &s.policy, key, raw, typed.Request{Change: typed.ChangeOf(func(ctx context.Context, b *tin) error {
				if runs++; row.others != nil {
					row.others(t, s, runs)
				}
				return add(ctx, b)
			})})
			if !errors.Is(err, row.want) || runs != row.runs || trace.Conflicts != row.conflicts {
				t.Errorf("error %v after %d runs and %d conflicts, want %v after %d and %d", err, runs, trace.Conflicts, row.want, row.runs, row.conflicts)
			}
			got := tin{Count: -1}
			if stored := s.Item(t, raw); stored != nil {
				got, _ = typed.As[tin](s.table.Decode(stored))
			}
			if got.Count != row.count {
				t.Errorf("stored %+v, want count %d", got, row.count)
			}
		})
	}
}

// Behind a sleep each try reads again; who sleeps shortly answers conflicts at once there,
// too.
func TestReadsBehindSleeps(t *testing.T) {
	for most, want := range map[time.Duration]int{eager: 2, eager + 1: 5} { // of 7 tries
		r := rig.New(t)
		rig.InVirtualTime(t, 4, func(t *testing.T, network fault.Doer) { // where nothing is late
			count := fault.NewCounter(network)
			s := openOver(t, &rig.Rig{Table: r.Table, Client: rig.Client(rig.Over(count))}, rig.Client(rig.Over(network)))
			s.stored(t, nil)
			s.policy.Attempts, s.policy.Wait.Max = 8, most
			runs := 0
			_, _, err := Run(t.Context(), s.table, &s.policy, key, raw, typed.Request{Change: typed.ChangeOf(func(ctx context.Context, b *tin) error {
				runs++
				s.writeOnce(t, runs, 6)
				return add(ctx, b)
			})})
			rig.Is(t, err)
			if reads := count.Count("GetItem"); reads != want || runs != 7 {
				t.Errorf("sleeps up to %v: %d reads for %d tries, want %d for 7", most, reads, runs, want)
			}
		})
	}
}

// writeOnce writes as others do, up to the last time.
func (s *shelf) writeOnce(t *testing.T, nth, last int) {
	if nth <= last {
		s.put(t, ddb.Item{"id": ddb.Text("beans"), "count": ddb.Integer(int64(9 + nth)), "version": ddb.Integer(int64(3 + nth))})
	}
}

func (s *shelf) storedAt(t *testing.T, nth, at int, more ddb.Item) {
	if nth == at {
		s.stored(t, more)
	}
}

func (s *shelf) delete(t *testing.T) {
	rig.Must(s.others.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.Table, Key: raw}))(t)
}

// An item that this process believes in is no evidence: what a change says of it
// without a write is confirmed on a fresh read.
func TestRunFromABelievedItem(t *testing.T) {
	s := open(t)
	s.stored(t, nil)
	no := errors.New("sold out")
	runs := 0
	believed := ddb.Item{"id": ddb.Text("beans"), "count": ddb.Integer(0), "version": ddb.Integer(2)}
	got, _, err := Run(t.Context(), s.table, &s.policy, key, raw, typed.Request{From: believed, Change: typed.ChangeOf(func(_ context.Context, b *tin) error {
		if runs++; b.Count == 0 {
			return no
		}
		b.Count--
		return nil
	})})
	item, err := typed.As[tin](got, err)
	rig.Is(t, err)
	if runs != 2 || item.Version != 4 {
		t.Errorf("%+v after %d runs", item, runs)
	}
}

// Each row is what stands in the place of a new item.
func TestCreate(t *testing.T) {
	stub := ddb.Item{"id": ddb.Text("beans"), "lockStub": ddb.True(), "expiresAt": ddb.Integer(1)}
	held := ddb.Item{"id": ddb.Text("beans"), "lockStub": ddb.True(), "lockedBy": ddb.Text("joe"), "lockTime": ddb.Number(ddb.Seconds(time.Now().Add(time.Hour)))}
	tombstone := ddb.Item{"id": ddb.Text("beans"), "tombstone": ddb.True(), "expiresAt": ddb.Integer(1), "version": ddb.Integer(9)}
	for name, row := range map[string]struct {
		stored ddb.Item
		want   error
	}{
		"nothing":      {},
		"an item":      {stored: ddb.Item{"id": ddb.Text("beans")}, want: repo.ErrExists},
		"a stub":       {stored: stub},
		"a stub, held": {stored: held, want: repo.ErrLocked},
		"a tombstone":  {stored: tombstone},
		"a foreign attribute": {stored: ddb.Item{"id": ddb.Text("beans"), "lockStub": ddb.True(), "writers": ddb.Text("me")},
			want: repo.ErrSchema},
	} {
		for _, kind := range []fault.Kind{fault.None, fault.DropRequest, fault.LoseResponse, fault.Resend} {
			s := open(t)
			if row.stored != nil {
				s.put(t, row.stored)
			}
			s.Nth("UpdateItem", 0, kind)
			item, err := typed.As[tin](Create(t.Context(), s.table, &tin{ID: "beans", Count: 5}, s.policy.Settings, nil))
			want := row.want
			if row.stored != nil && (kind == fault.LoseResponse || kind == fault.DropRequest) {
				want = repo.ErrOutcomeUnknown // it may have been made, and deleted since
			}
			if !errors.Is(err, want) {
				t.Errorf("%s, %v: error %v, want %v", name, kind, err, want)
			}
			if stored := s.Item(t, raw); want == nil {
				got, _ := typed.As[tin](s.table.Decode(stored))
				if got != item || got.Count != 5 || got.Version != 1 || s.table.Core.Hidden(stored) || stored["expiresAt"] != nil {
					t.Errorf("%s, %v: returned %+v, stored %v", name, kind, item, stored)
				}
			} else if !ddb.EqualItems(stored, row.stored) {
				t.Errorf("%s, %v: it has changed to %v", name, kind, stored)
			}
		}
	}
}

// A lock in the place of a new item is waited for as long as the settings allow: that is
// no conflict with writers.
func TestCreateWaitsForALock(t *testing.T) {
	s := open(t)
	stub := ddb.Item{"id": ddb.Text("beans"), "lockStub": ddb.True()}
	held := ddb.Item{"id": ddb.Text("beans"), "lockStub": ddb.True(), "lockedBy": ddb.Text("joe"), "lockTime": ddb.Number(ddb.Seconds(time.Now().Add(time.Hour)))}
	s.put(t, held)
	s.policy.Wait.Attempts = 0
	s.Faults(func(_ string, n int, _ []byte) fault.Kind {
		if n == 2*createTries {
			s.put(t, stub)
		}
		return fault.None
	})
	item, err := typed.As[tin](Create(t.Context(), s.table, &tin{ID: "beans", Count: 5}, s.policy.Settings, nil))
	rig.Is(t, err)
	if item.Version != 1 || item.Count != 5 {
		t.Errorf("made %+v", item)
	}
}

// But where what stands there is another thing each time, a call ends.
func TestCreateEndsAmongOthers(t *testing.T) {
	s := open(t)
	s.Faults(func(string, int, []byte) fault.Kind {
		s.put(t, ddb.Item{"id": ddb.Text("beans"), "lockStub": ddb.True(), "writers": protocol.NewWriteID().Push(nil)})
		return fault.None
	})
	s.Count.Reset()
	_, err := Create(t.Context(), s.table, &tin{ID: "beans"}, s.policy.Settings, nil)
	rig.Is(t, err, repo.ErrConflict)
	rig.Equal(t, s.Count.Total(), createTries, "requests")
}

// What a change may do to an item, and what of it is written.
func TestChange(t *testing.T) {
	s := open(t)
	from := rig.Must(typed.SnapshotOf(s.table, ddb.Item{"id": ddb.Text("beans"), "count": ddb.Integer(1), "label": ddb.Text("old"), "version": ddb.Integer(3), "mine": ddb.True()}))(t)
	no := errors.New("no")
	for name, row := range map[string]struct {
		change func(b *tin) error
		want   error
		remove bool
		set    int
		gone   int
	}{
		"nothing":        {change: func(*tin) error { return nil }},
		"one attribute":  {change: func(b *tin) error { b.Count = 2; return nil }, set: 1},
		"one is emptied": {change: func(b *tin) error { b.Label = ""; return nil }, gone: 1},
		"refused":        {change: func(*tin) error { return no }, want: no},
		"removed":        {change: func(*tin) error { return repo.Remove }, remove: true},
		"its key":        {change: func(b *tin) error { b.ID = "peas"; return nil }, want: repo.ErrFixed},
		"its version":    {change: func(b *tin) error { b.Version++; return nil }, want: repo.ErrFixed},
	} {
		edit, err := typed.Change(t.Context(), s.table, from, typed.ChangeOf(func(_ context.Context, b *tin) error { return row.change(b) }))
		if !errors.Is(err, row.want) || edit.Remove != row.remove || len(edit.Diff.Set) != row.set || len(edit.Diff.Remove) != row.gone {
			t.Errorf("%s: %+v, %v", name, edit, err)
		}
	}
}

// The image that a process keeps is what a commit of its own leaves: no lock, no
// mark, and what others put there.
func TestApplyTo(t *testing.T) {
	core := open(t).table.Core
	before := ddb.Item{"id": ddb.Text("beans"), "count": ddb.Integer(1), "version": ddb.Integer(3), "mine": ddb.True(), "lockedBy": ddb.Text("me"),
		"lockTime": ddb.Integer(1), "lockHeld": ddb.Integer(1), "lockLease": ddb.Integer(1), "lockToken": ddb.Integer(2)}
	ring := typed.Writers(core, protocol.NewWriteID(), before)
	after := typed.ApplyTo(core, before, ddb.Diff{Set: []ddb.Attribute{{Name: "count", Value: ddb.Integer(7)}}, Remove: []string{"label"}}, ring, 2)
	want := ddb.Item{"id": ddb.Text("beans"), "count": ddb.Integer(7), "version": ddb.Integer(5), "mine": ddb.True(), "lockToken": ddb.Integer(2), "writers": ring}
	if !ddb.EqualItems(after, want) {
		t.Errorf("%v, want %v", after, want)
	}
}

// A call from inside a change of the same item is refused, until the change has
// returned: its context may live longer.
func TestACallInsideAChangeOfItsItem(t *testing.T) {
	table, raw := open(t).table, ddb.Item{"id": ddb.Text("beans")}
	var inside context.Context
	run := typed.Inside(table, raw, func(ctx context.Context, _ any) error { inside = ctx; return typed.Refuse(ctx, table, key, raw) })
	rig.Is(t, run(t.Context(), nil), repo.ErrNested)
	rig.Is(t, typed.Refuse(inside, table, key, raw))
	rig.Is(t, typed.Refuse(t.Context(), table, key, raw))
}
