package nolock

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/expressions"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

func (r *engine) put(ctx context.Context, item any) error {
	raw, err := r.whole(item)
	if err != nil {
		return err
	}
	key := r.table.KeyOf(item)
	d := r.core.Whole(raw)
	if err := r.core.CheckSize(r.core.Key(raw), d); err != nil {
		return fmt.Errorf("%s: %w", r.core.ItemName(key), err)
	}
	return r.send(ctx, "Put", key, raw, func(w *protocol.Write, hidden ddb.Item) error { r.putting(w, raw, hidden); return nil })
}

// whole encodes an item that a caller puts, with its type and the time of now.
func (r *engine) whole(item any) (ddb.Item, error) {
	return r.table.EncodeGiven(r.table.Stamp(item, r.core.Clock(), true))
}

// putting adds a whole item to an event write. When it was made stays as it is, of an
// item that is there.
func (r *engine) putting(w *protocol.Write, raw, hidden ddb.Item) {
	d := r.core.Whole(raw).Without(r.core.Version)
	if hidden != nil {
		w.Apply(d)
	} else {
		w.Apply(d.Without(r.core.Created))
		lockless.SetOnce(w, r.core.Created, raw[r.core.Created])
	}
	r.unhide(w, hidden, d)
}

func (r *engine) apply(ctx context.Context, key repo.Key, at any, update expression.UpdateBuilder) error {
	raw, err := r.event(key, at)
	if err != nil {
		return err
	}
	built, err := r.build(key, update)
	if err != nil {
		return err
	}
	return r.send(ctx, "Apply", key, raw, func(w *protocol.Write, hidden ddb.Item) error { return r.merge(w, raw, built, hidden) })
}

func (r *engine) deleteAt(ctx context.Context, key repo.Key, at any) error {
	raw, err := r.event(key, at)
	if err != nil {
		return err
	}
	return r.send(ctx, "DeleteAt", key, raw, func(w *protocol.Write, _ ddb.Item) error { r.bury(w, raw); return nil })
}

// build builds a user's update, before anything is sent.
func (r *engine) build(key repo.Key, update expression.UpdateBuilder) (*expressions.Update, error) {
	built, err := expressions.Build(r.core, update, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.core.ItemName(key), err)
	}
	return built, nil
}

// merge adds a user's update to an event write.
func (r *engine) merge(w *protocol.Write, raw ddb.Item, update *expressions.Update, hidden ddb.Item) error {
	r.stamp(w, raw)
	stamped := r.stampRoles(w, hidden)
	var touched ddb.Diff // by the update, in whatever way
	reads, err := update.Merge(w, func(attr string) error {
		touched.Remove = append(touched.Remove, attr)
		return expressions.CheckTarget(r.core, attr)
	})
	if err != nil {
		return err
	}
	used := func(name string) bool { return slices.Contains(touched.Remove, name) || slices.Contains(reads, name) }
	var left leftovers
	if kept := typed.Leftovers(r.core, hidden); slices.ContainsFunc(kept, used) {
		left = kept
	}
	if ttl := r.core.Attr.TTL; hidden[ttl] != nil && slices.Contains(reads, ttl) {
		left = append(left, ttl)
	}
	if left != nil {
		return left
	}
	touched.Set = stamped
	r.unhide(w, hidden, touched)
	return nil
}

// stampRoles makes an event write, which may make its item, say of what type it is,
// and when it was made and changed. It returns what it has set.
func (r *engine) stampRoles(w *protocol.Write, hidden ddb.Item) (set []ddb.Attribute) {
	set = r.core.Stamp(r.core.Clock(), true)
	if r.core.Type != "" {
		set = append(set, ddb.Attribute{Name: r.core.Type, Value: r.core.TypeName})
	}
	for _, a := range set {
		if a.Name == r.core.Created && hidden == nil {
			lockless.SetOnce(w, a.Name, a.Value)
		} else {
			w.Set(a.Name, a.Value)
		}
	}
	return set
}

// bury makes an event write a deletion.
func (r *engine) bury(w *protocol.Write, raw ddb.Item) {
	r.tombstone(w, nil)
	r.stamp(w, raw)
	w.Remove(r.core.Attr.LockStub)
	lockless.IfMark(w, r.core.Attr.LockStub)
	lockless.IfMark(w, r.core.Attr.Tombstone)
}

// event encodes a key, and the time and the id of an event.
func (r *engine) event(key repo.Key, at any) (ddb.Item, error) {
	raw, err := r.table.EncodeKey(key)
	if err != nil {
		return nil, err
	}
	e, ok := at.(Event)
	if !ok {
		e = Event{Time: at}
	}
	if raw[r.core.EventTime], err = r.eventTime(e.Time); err != nil {
		return nil, fmt.Errorf("%w: event time of %s: %w", repo.ErrSchema, r.core.ItemName(key), err)
	}
	switch {
	case e.ID == nil:
		return raw, r.table.CheckEvent(raw)
	case r.core.EventID == "":
		return nil, fmt.Errorf("%w: an event id is given, but the type has no field tagged repo:\"eventid\"", repo.ErrSchema)
	}
	if raw[r.core.EventID], err = r.eventID(e.ID); err != nil {
		return nil, fmt.Errorf("%w: event id of %s: %w", repo.ErrSchema, r.core.ItemName(key), err)
	}
	return raw, r.table.CheckEvent(raw)
}

// eventTime encodes the time of an event as its caller has given it.
func (r *engine) eventTime(at any) (types.AttributeValue, error) {
	if t, ok := at.(attributevalue.UnixTime); ok {
		at = time.Time(t)
	}
	if when, ok := at.(time.Time); ok && when.IsZero() {
		return nil, errors.New("it is not set")
	} else if ok && r.core.EventSeconds {
		if err := stored.WholeSeconds(when); err != nil {
			return nil, err
		}
	}
	return r.encodeTime(at)
}

// eventID encodes the id of an event, which must be of the field's type.
func (r *engine) eventID(given any) (types.AttributeValue, error) {
	id, err := attributevalue.Marshal(given)
	if err != nil {
		return nil, redact.Error(err)
	}
	if ddb.TypeName(id) != r.core.IDKind {
		return nil, fmt.Errorf("%T is stored as %s, the field tagged repo:\"eventid\" as %s", given, ddb.TypeName(id), r.core.IDKind)
	}
	return id, ddb.KeptText(id)
}

func (r *engine) encodeTime(at any) (types.AttributeValue, error) {
	if t, ok := at.(time.Time); ok {
		if r.cfg.Unit == 0 {
			return nil, fmt.Errorf("a time.Time needs Config.Unit, what one step of the integer event time means")
		}
		n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(int64(time.Second)))
		n.Add(n, big.NewInt(int64(t.Nanosecond())))
		return ddb.Number(n.Quo(n, big.NewInt(int64(r.cfg.Unit))).String()), nil
	}
	av, err := attributevalue.Marshal(at)
	if err != nil {
		return nil, redact.Error(err)
	}
	if _, err := ddb.Int(av); err != nil {
		return nil, fmt.Errorf("%T: %w", at, err)
	}
	return av, nil
}

func (r *engine) stamp(w *protocol.Write, raw ddb.Item) {
	w.Set(r.core.EventTime, raw[r.core.EventTime])
	if r.core.EventID == "" {
		return
	}
	if id := raw[r.core.EventID]; id != nil {
		w.Set(r.core.EventID, id)
	} else {
		w.Remove(r.core.EventID) // an id of the event before would break ties wrongly
	}
}

// How event times that nobody has set are stored: the zero time, and the zero of
// integers, which is no sequence number either: numbers begin with 1.
var notSet = []types.AttributeValue{ddb.Integer(0), ddb.Integer(time.Time{}.Unix())}

// checkAhead refuses an event without a time, or too far in the future.
func (r *engine) checkAhead(at types.AttributeValue) error {
	if at == nil || ddb.Equal(at, notSet[0]) || r.core.EventSeconds && ddb.Equal(at, notSet[1]) {
		return fmt.Errorf("%w: the event time (attribute %q) is not set: 0 is no time of an event, and no sequence number (begin with 1)", repo.ErrSchema, r.core.EventTime)
	}
	if r.cfg.Unit == 0 {
		return nil
	}
	limit := r.policy.Clock().Add(r.cfg.MaxSkew)
	steps, err := r.encodeTime(limit)
	if err != nil {
		return err
	}
	if order, _ := ddb.Compare(at, steps); order > 0 {
		return fmt.Errorf("%w: the event is dated more than MaxSkew (%v) ahead; it would freeze the item until then", ErrAhead, r.cfg.MaxSkew)
	}
	return nil
}
