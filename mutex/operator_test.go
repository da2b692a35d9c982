package mutex_test

import (
	"bytes"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// byHand makes the row of a lock that was taken without the library.
func (b bench) byHand(t testing.TB, name, owner string, more map[string]types.AttributeValue) {
	t.Helper()
	item := map[string]types.AttributeValue{
		"name":     &types.AttributeValueMemberS{Value: name},
		"lockedBy": &types.AttributeValueMemberS{Value: owner},
		"lockTime": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)},
	}
	for attr, v := range more {
		item[attr] = v
	}
	rig.Must(rig.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: item}))(t)
}

// Between an attempt without an answer and its repetition others go on. What an
// operator is told then must be true, or "unknown".
func TestVerdictsOfOperators(t *testing.T) {
	const name = "door"
	none := func(*testing.T, bench, *mutex.Locker) {}
	taken := func(t *testing.T, _ bench, rival *mutex.Locker) { lock(t, rival, name) }
	takenAndFreed := func(t *testing.T, _ bench, rival *mutex.Locker) {
		rig.Is(t, lock(t, rival, name).Unlock(t.Context()))
	}
	freedByHand := func(t *testing.T, b bench, _ *mutex.Locker) {
		rig.Must(rig.Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &b.Table,
			Key:              map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: name}},
			UpdateExpression: ptr("REMOVE lockedBy, lockTime")}))(t)
	}
	for what, c := range map[string]struct {
		hand   bool // the hold is one by hand
		more   map[string]types.AttributeValue
		fault  fault.Kind
		after  func(t *testing.T, b bench, rival *mutex.Locker) // between the attempts
		byID   bool                                             // Release instead of Break
		want   error
		heldBy bool // somebody holds the name in the end
	}{
		"break by hand, answer lost":                       {hand: true, fault: fault.LoseResponse, after: none},
		"break by hand, answer lost, taken by others":      {hand: true, fault: fault.LoseResponse, after: taken, heldBy: true},
		"break by hand, answer lost, row deleted since":    {hand: true, fault: fault.LoseResponse, after: takenAndFreed, want: repo.ErrOutcomeUnknown},
		"break by hand, never arrived, ended by hand":      {hand: true, fault: fault.DropRequest, after: freedByHand, want: repo.ErrOutcomeUnknown},
		"break by hand, never arrived":                     {hand: true, fault: fault.DropRequest, after: none},
		"break by hand, certainly not sent, ended by hand": {hand: true, fault: fault.Refuse, after: freedByHand, want: repo.ErrNotHeld},
		"break by hand, no ring under the name of one":     {hand: true, more: map[string]types.AttributeValue{"writers": &types.AttributeValueMemberS{Value: "ours"}}, fault: fault.LoseResponse, after: none, want: repo.ErrSchema, heldBy: true},
		"break, answer lost":                               {fault: fault.LoseResponse, after: none},
		"break, answer lost, taken by others":              {fault: fault.LoseResponse, after: taken, heldBy: true},
		"break, answer lost, row deleted since":            {fault: fault.LoseResponse, after: takenAndFreed, want: repo.ErrOutcomeUnknown},
		"release, answer lost":                             {byID: true, fault: fault.LoseResponse, after: none},
		"release, answer lost, taken by others":            {byID: true, fault: fault.LoseResponse, after: taken, heldBy: true, want: repo.ErrOutcomeUnknown},
		"release, answer lost, replaced by what cannot be read": {byID: true, fault: fault.LoseResponse, after: func(t *testing.T, b bench, _ *mutex.Locker) {
			b.byHand(t, name, "x", map[string]types.AttributeValue{"lockHeld": &types.AttributeValueMemberS{Value: "?"}})
		}, heldBy: true, want: repo.ErrOutcomeUnknown},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			l := b.locker(t, mutex.Config{})
			rival := rig.Must(mutex.New(rig.Client(), b.Table, mutex.Config{}))(t)
			var token int64
			id := ""
			if c.hand {
				b.byHand(t, name, "alice", c.more)
			} else {
				held := lock(t, rival, name)
				token, id = held.Token(), held.ID()
			}
			var n atomic.Int32
			b.Faults(func(op string, _ int, _ []byte) fault.Kind {
				if op == "GetItem" {
					return fault.None
				}
				switch n.Add(1) {
				case 1:
					return c.fault
				case 2:
					c.after(t, b, rival)
				}
				return fault.None
			})
			var err error
			if c.byID {
				err = l.Release(t.Context(), name, id)
			} else {
				err = l.Break(t.Context(), name, token)
			}
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			rig.Equal(t, b.row(t, name)["lockedBy"] != nil, c.heldBy, "held")
		})
	}
}

// A heartbeat between the two requests of a Break is no end of the hold.
func TestBreakOfALockThatBeats(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{})
	held := lock(t, rig.Must(mutex.New(rig.Client(), b.Table, mutex.Config{Mode: mutex.FailOpen}))(t), "door")
	var n atomic.Int32
	b.Faults(func(op string, _ int, _ []byte) fault.Kind {
		if op == "UpdateItem" && n.Add(1) == 1 {
			rig.Is(t, held.Extend(t.Context()))
		}
		return fault.None
	})
	rig.Is(t, l.Break(t.Context(), "door", held.Token()))
	rig.Is(t, held.Unlock(t.Context()), repo.ErrLockLost, repo.ErrNotHeld)
}

// What others have left on an item between the two requests stays, where a Break leaves a
// mark beside it.
func TestBreakBesideTheTracesOfOthers(t *testing.T) {
	b := newBench(t)
	b.byHand(t, "door", "alice", nil)
	trace := []byte("8 bytes.")
	var n atomic.Int32
	b.Faults(func(op string, _ int, _ []byte) fault.Kind {
		if op == "UpdateItem" && n.Add(1) == 1 {
			rig.Must(rig.Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &b.Table,
				Key:                       map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: "door"}},
				UpdateExpression:          ptr("SET writers = :trace"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":trace": &types.AttributeValueMemberB{Value: trace}}}))(t)
		}
		return fault.None
	})
	rig.Is(t, b.locker(t, mutex.Config{}).Break(t.Context(), "door", 0))
	row := b.row(t, "door")
	if ring, is := row["writers"].(*types.AttributeValueMemberB); !is || !bytes.HasSuffix(ring.Value, trace) || row["lockedBy"] != nil {
		t.Errorf("%v", row)
	}
}

func ptr[T any](v T) *T { return &v }

// The row of a lock tells which hold of it somebody else has ended last, and that no later one was.
func TestInfoTellsWhichHoldWasLost(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l := b.locker(t, cfg)
		first := lock(t, l, "door")
		if info := rig.Must(l.Inspect(t.Context(), "door"))(t); info.Lost >= first.Token() {
			t.Errorf("before anything was lost: %d, token %d", info.Lost, first.Token())
		}
		rig.Is(t, l.Break(t.Context(), "door", first.Token()))
		second := lock(t, b.locker(t, cfg), "door")
		info := rig.Must(l.Inspect(t.Context(), "door"))(t)
		if info.Token != second.Token() || info.Lost != first.Token() {
			t.Errorf("token %d, lost %d; want %d, %d", info.Token, info.Lost, second.Token(), first.Token())
		}
	})
}

func TestInspectTellsWhoHoldsAName(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		cfg.Owner = "till-7"
		l := b.locker(t, cfg)
		_, err := l.Inspect(t.Context(), "door")
		rig.Is(t, err, repo.ErrNotHeld)
		from := time.Now().Truncate(time.Second)
		held := lock(t, l, "door")
		b.Count.Reset()
		info := rig.Must(b.locker(t, mutex.Config{}).Inspect(t.Context(), "door"))(t)
		if info.Owner != "till-7" || info.Token != held.Token() || info.Mode != cfg.Mode || info.Key != (repo.Key{Partition: "door"}) {
			t.Errorf("%+v", info)
		}
		if info.Since.Before(from) || info.Since.After(time.Now()) {
			t.Errorf("held since %v", info.Since)
		}
		rig.Equal(t, info.Until.IsZero(), cfg.Mode == mutex.FailClosed, "%v: until %v", cfg.Mode, info.Until)
		rig.Is(t, held.Unlock(t.Context()))
		_, err = l.Inspect(t.Context(), "door")
		rig.Is(t, err, repo.ErrNotHeld)
	})
}
