package resources

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Counts is what a write does to the counters of a resource.
type Counts struct {
	Queued, Running, Dead, Later int64
	Registers                    bool // it may be the first write of the resource
	Levels                       bool // a job has another priority than the default
}

// Add adds what another one does.
func (c *Counts) Add(o Counts) {
	c.Queued, c.Running, c.Dead, c.Later = c.Queued+o.Queued, c.Running+o.Running, c.Dead+o.Dead, c.Later+o.Later
	c.Registers, c.Levels = c.Registers || o.Registers, c.Levels || o.Levels
}

// Count adds to a write what it counts. ends says that something ends that runs: the
// counter must be there.
func (t *Table) Count(w *ddb.Write, c Counts, ends bool) {
	if c.Registers {
		t.register(w)
	}
	if c.Levels {
		w.Set(aLevels, ddb.True())
	}
	for _, n := range []struct {
		attr   string
		by     int64
		always bool
	}{{aQueued, c.Queued, false}, {aRunning, c.Running, c.Registers}, {aDead, c.Dead, false}, {aLater, c.Later, false}, {aChanges, 1, false}} {
		if n.by != 0 || n.always {
			count(w, n.attr, n.by)
		}
	}
	if ends {
		w.IfExists(aRunning)
	}
}

// Counted reports whether a row has the counter that an end needs.
func Counted(row ddb.Item) bool { return row[aRunning] != nil }

// count adds n to a counter of a resource, which may not be there yet.
func count(w *ddb.Write, attr string, n int64) {
	w.SetTo(attr, "if_not_exists("+w.Name(attr)+", "+w.Value(ddb.Integer(0))+") + "+w.Value(ddb.Integer(n)))
}

// register adds what a resource must have to a write that may be its first.
func (t *Table) register(w *ddb.Write) {
	w.SetTo(aLimit, "if_not_exists("+w.Name(aLimit)+", "+w.Value(ddb.Integer(int64(max(t.Cfg.Limit, 1))))+")")
}

// Take adds to the write of a permit that it counts, if there is room for one more, and
// the next token.
func (t *Table) Take(w *ddb.Write, now time.Time) {
	t.register(w)
	count(w, aRunning, 1)
	count(w, aChanges, 1)
	t.NextToken(w, now)
}

// GiveBack adds to the write of a permit that it is counted off.
func (t *Table) GiveBack(w *ddb.Write) {
	count(w, aRunning, -1)
	count(w, aChanges, 1)
}

// HandOver adds to the write of a permit what changes when it goes to another caller: a
// lower limit, or a pause, holds from now on.
func (t *Table) HandOver(w *ddb.Write, now time.Time) {
	count(w, aChanges, 1)
	t.NextToken(w, now)
}

// NextToken gives out the next fencing token of a resource.
func (t *Table) NextToken(w *ddb.Write, now time.Time) {
	w.SetTo(aToken, "if_not_exists("+w.Name(aToken)+", "+w.Value(ddb.Integer(now.UnixMicro()))+") + "+w.Value(ddb.Integer(1)))
}

// Room is how what runs compares to the limit.
type Room string

// A new permit needs one more place, one that is handed over has it.
const (
	ForOneMore Room = " < "
	ForTheSame Room = " <= "
)

// If demands that what runs compares to the limit: to that which SetLimit has set, or
// else to this program's own, or else to that of the row. Numbers that nobody can have
// counted let nobody in.
func (t *Table) If(w *ddb.Write, room Room) {
	compares, zero := string(room), w.Value(ddb.Integer(0))
	running, limit := w.Name(aRunning), w.Name(aLimit)
	below := running + compares + limit + " AND " + limit + " <= " + w.Value(ddb.Integer(MaxCount))
	if t.Cfg.Limit != 0 {
		fixed := w.Name(aFixed)
		below = "(attribute_exists(" + fixed + ") AND " + below + " OR attribute_not_exists(" + fixed + ") AND " + running + compares + w.Value(ddb.Integer(int64(t.Cfg.Limit))) + ")"
	}
	w.If("(attribute_not_exists(" + running + ") OR " + running + " >= " + zero + " AND " + below + ")")
	token := w.Name(aToken)
	w.If("(attribute_not_exists(" + token + ") OR " + token + " BETWEEN " + zero + " AND " + w.Value(ddb.Integer(MaxToken-1)) + ")")
}

// Start adds to the write of a resource what the start of jobs needs: tokens from first
// to last, greater than any before, and room for those of them that wait, some. The
// running count grows by more in this transaction, of which others' ends may be a part.
func (t *Table) Start(w *ddb.Write, r Row, first, last int64, some bool, more int64) {
	from := w.Value(ddb.Integer(first))
	w.If("(attribute_not_exists(" + w.Name(aToken) + ") OR " + w.Name(aToken) + " < " + from + ")")
	w.Set(aToken, ddb.Integer(last))
	if !some {
		return // those who are taken over are counted already
	}
	most := int64(r.Limit) - more
	w.If(w.Name(aRunning) + " BETWEEN " + w.Value(ddb.Integer(0)) + " AND " + w.Value(ddb.Integer(most)))
	limit := ddb.Integer(int64(r.Limit))
	switch {
	case r.Fixed || t.Cfg.Limit == 0:
		w.IfEqual(aLimit, limit)
	default:
		w.IfAbsent(aFixed)
		if r.Stored != r.Limit {
			w.Set(aLimit, limit)
		}
	}
}

// Adopt tells the row this program's limit where it has another, once for each
// process: for programs that have none of their own, and for those who look. That
// nobody has called SetLimit is in its condition, and nothing depends on it.
func (t *Table) Adopt(ctx context.Context, r Row) {
	if r.Fixed || r.Stored == r.Limit {
		return
	}
	already := false
	t.adopted.Change(r.Name, func(was bool) (bool, bool) { already = was; return true, true })
	if already {
		return
	}
	w := t.Core.NewWrite()
	w.Set(aLimit, ddb.Integer(int64(r.Limit)))
	w.IfEqual(aLimit, ddb.Integer(int64(r.Stored)))
	w.IfAbsent(aFixed)
	t.Write(ctx, r.Name, w, ddb.Options{NoGrace: true})
}

// SetLimit sets how many permits and running jobs a resource may have at once.
func (t *Table) SetLimit(ctx context.Context, resource string, limit int) error {
	if err := t.CheckName(resource); err != nil {
		return err
	}
	if limit < 1 || limit > MaxCount {
		return fmt.Errorf("%w: the limit of resource %q cannot be %d: use 1 to %d", repo.ErrConfig, resource, limit, MaxCount)
	}
	return t.operate(ctx, resource, updates, func(w *ddb.Write) {
		w.Set(aLimit, ddb.Integer(int64(limit)))
		w.Set(aFixed, ddb.True())
	}, func(r Row) bool { return r.Fixed && r.Stored == limit }, changedSince)
}

// changedSince is for calls that nothing but what others do can refuse.
func changedSince(r Row, _ ddb.Result) error { return Unknown(r.Name, nil) }

// Forget removes a resource that nobody uses; inUse is the error of one that is used.
func (t *Table) Forget(ctx context.Context, resource string, inUse error) error {
	if err := t.CheckName(resource); err != nil {
		return err
	}
	demand := func(w *ddb.Write) {
		for _, counter := range []string{aQueued, aRunning, aDead, aLater} {
			none := w.Value(ddb.Integer(0))
			w.If("(attribute_not_exists(" + w.Name(counter) + ") OR " + w.Name(counter) + " = " + none + ")")
		}
	}
	return t.operate(ctx, resource, removes, demand, func(Row) bool { return false }, func(r Row, _ ddb.Result) error {
		return fmt.Errorf("%w: resource %q has %d jobs queued, %d dead, and %d running or permits", inUse, resource, r.Queued+r.Later, r.Dead, r.Running)
	})
}
