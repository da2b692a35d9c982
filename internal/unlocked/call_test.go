package unlocked

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.Main(m) }

var (
	key = repo.Key{Partition: "beans"}
	raw = ddb.Item{"id": ddb.Text("beans")}
)

// process writes an item, and has a locker that holds it.
type process struct {
	*rig.Rig
	core   *protocol.Core
	locker *lock.Locker
	ahead  time.Duration // of its clock
}

// open makes a table with one item, and a process.
func open(t *testing.T) *process {
	t.Helper()
	p := &process{Rig: rig.New(t)}
	type tin struct {
		ID string `dynamodbav:"id" repo:"pk"`
	}
	table := rig.Must(repo.NewTable[tin](p.Client, p.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	rig.Must(rig.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &p.Table, Item: raw}))(t)
	p.core = protocol.Of(link.Table(table.KeyTable))
	p.locker = lock.NewLocker(p.core, lock.Config{Owner: "me", Lease: time.Hour, Skew: time.Second, Wait: repo.Wait{Min: time.Millisecond, Max: 5 * time.Millisecond},
		Clock: func() time.Time { return time.Now().Add(p.ahead) }})
	return p
}

// record is what stands on the item.
func (p *process) record(t *testing.T) (stored.Record, ddb.Item) {
	t.Helper()
	item := p.Item(t, raw)
	return rig.Must(p.core.ParseRecord(item))(t), item
}

func (p *process) call() *Call {
	return &Call{Waiter: lock.Waiter{Core: p.core, Key: key, Raw: raw, Settings: lock.Settings{Wait: p.locker.Wait, Skew: p.locker.Skew, Clock: p.locker.Clock}}}
}

// A context may be that of another lock, and end with its loss or its release. Of a call in doubt that
// says why nobody looked any further, and not that nothing was written.
func TestTheEndOfAnotherLockIsNoVerdict(t *testing.T) {
	p := open(t)
	for _, end := range []error{repo.ErrLockLost, repo.ErrLockExpired, repo.ErrReleased, repo.ErrNotHeld} {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := p.call()
		err := w.Do(ctx, func() error {
			w.Doubt.Sent(false)
			cancel(end)
			return lock.UnknownOutcome(p.core.Table, key, nil)
		})
		rig.Is(t, err, repo.ErrOutcomeUnknown, context.Canceled)
		if errors.Is(err, end) {
			t.Errorf("%v says that nothing was written", err)
		}
	}
}

// Who holds no lock waits for a live hold, and breaks one that is over: its
// holder finds out, and the item is there for the next try.
func TestWaitOrBreak(t *testing.T) {
	p := open(t)
	h, _, err := p.locker.Acquire(t.Context(), key, raw, lock.Request{})
	rig.Is(t, err)
	_, held := p.record(t)
	w := p.call()
	w.Wait.Attempts = 1
	rig.Is(t, w.WaitOrBreak(t.Context(), held), repo.ErrLocked)
	w = p.call()
	rig.Is(t, w.WaitOrBreak(t.Context(), held)) // it has slept, and may try again
	if w.Began.IsZero() {
		t.Error("it has not slept")
	}
	if l, _ := p.record(t); l.By != h.ID() {
		t.Errorf("a live hold was broken: %+v", l)
	}
	p.ahead = 2 * time.Hour
	w = p.call()
	w.Wait.Attempts = 1 // breaking is no try in vain
	rig.Is(t, w.WaitOrBreak(t.Context(), held))
	if l, _ := p.record(t); l.Busy() || l.Stolen != h.Token() {
		t.Errorf("stored is %+v", l)
	}
	_, err = h.End(t.Context(), lock.End{})
	rig.Is(t, err, repo.ErrLockLost)
	rig.Is(t, p.call().WaitOrBreak(t.Context(), ddb.Item{"id": ddb.Text("beans"), "lockTime": ddb.Text("soon")}), repo.ErrSchema)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.ahead = 0
	rig.Is(t, p.call().WaitOrBreak(ctx, held), repo.ErrLocked, context.Canceled)
}

// The verdict of a call, from what became of its writes in turn.
func TestSendUntilJudged(t *testing.T) {
	no, judged := errors.New("no"), errors.New("judged")
	applied := ddb.Result{Outcome: ddb.Applied, Clean: true}
	refused := ddb.Result{Outcome: ddb.Refused, Clean: true, Err: no}
	condition := ddb.Result{Outcome: ddb.Condition, Clean: true}
	unclean := ddb.Result{Outcome: ddb.Condition}
	unknown := ddb.Result{Outcome: ddb.Unknown, Err: no}
	for name, row := range map[string]struct {
		writes  []ddb.Result
		unsent  error // of the last
		decided bool  // what judge says
		judged  error
		want    []error
		not     error
	}{
		"applied":                         {writes: []ddb.Result{applied}},
		"refused":                         {writes: []ddb.Result{refused}, want: []error{no}, not: repo.ErrOutcomeUnknown},
		"unknown":                         {writes: []ddb.Result{unknown}, want: []error{repo.ErrOutcomeUnknown, no}},
		"not sent":                        {writes: []ddb.Result{{}}, unsent: no, want: []error{no}, not: repo.ErrOutcomeUnknown},
		"condition, applied after all":    {writes: []ddb.Result{condition}, decided: true},
		"condition, not applied":          {writes: []ddb.Result{condition}, judged: judged, want: []error{judged}, not: repo.ErrOutcomeUnknown},
		"condition, once more":            {writes: []ddb.Result{condition, condition, applied}},
		"in doubt, then refused":          {writes: []ddb.Result{unclean, refused}, want: []error{repo.ErrOutcomeUnknown, no}},
		"in doubt, then not sent":         {writes: []ddb.Result{unclean, {}}, unsent: no, want: []error{repo.ErrOutcomeUnknown, no}},
		"in doubt, then judged":           {writes: []ddb.Result{unclean}, judged: judged, want: []error{repo.ErrOutcomeUnknown, judged}},
		"in doubt, then applied":          {writes: []ddb.Result{unclean, applied}},
		"in doubt, judged as not written": {writes: []ddb.Result{unclean}, judged: repo.ErrStale, want: []error{repo.ErrOutcomeUnknown}, not: repo.ErrStale},
	} {
		w := &Call{Waiter: lock.Waiter{Core: core, Key: key}}
		n := 0
		err := w.SendUntilJudged(t.Context(), protocol.NewWriteID(), func() (ddb.Result, error) {
			if n++; n == len(row.writes) && row.unsent != nil {
				return ddb.Result{}, row.unsent
			}
			return w.sent(row.writes[n-1]), nil
		}, func(ddb.Item) (bool, error) { return row.decided, row.judged })
		if (err == nil) != (row.want == nil) || n != len(row.writes) {
			t.Errorf("%s: %v after %d writes", name, err, n)
		}
		rig.Is(t, err, row.want...)
		if row.not != nil && errors.Is(err, row.not) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// core is of a table that is never asked.
var core = protocol.Of(stored.New(&stored.Table{Table: &ddb.Table{Name: "shelf"}}))

// The looks beside a write end with it, also if its client panics: they went on for ever.
func TestLooksEndWithAWriteThatPanics(t *testing.T) {
	p := open(t)
	p.core.Took(time.Millisecond)
	p.core.Raced(raw)
	var looks atomic.Int64
	looked := make(chan struct{})
	p.Count.OnRequest(func(op string, _ []byte) {
		switch {
		case op == "UpdateItem":
			<-looked
			panic("boom")
		case op == "GetItem" && looks.Add(1) == 1:
			close(looked)
		}
	})
	func() {
		defer func() { rig.Equal(t, recover(), any("boom"), "recovered") }()
		p.call().Update(context.Background(), rig.Must(p.core.NewWrite().Update(raw))(t), ddb.Options{})
	}()
	n := looks.Load()
	time.Sleep(10 * p.core.Late())
	rig.Equal(t, looks.Load(), n, "looks")
}

// A call whose context ends says what it waited for, unless its error says more.
func TestExplainEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &Call{Waiter: lock.Waiter{Core: core, Key: key}}
	_ = w.WaitAfterConflict(3)
	rig.Is(t, w.ExplainEnd(ctx, nil))
	if err := w.ExplainEnd(ctx, context.Canceled); errors.Is(err, repo.ErrConflict) {
		t.Errorf("its context goes on: %v", err)
	}
	cancel()
	rig.Is(t, w.ExplainEnd(ctx, context.Canceled), context.Canceled, repo.ErrConflict)
	locked := lock.Locked(core, key, stored.Record{By: "joe"})
	if err := w.ExplainEnd(ctx, ddb.Join(locked, context.Canceled)); errors.Is(err, repo.ErrConflict) || !errors.Is(err, repo.ErrLocked) {
		t.Errorf("it said why: %v", err)
	}
}
