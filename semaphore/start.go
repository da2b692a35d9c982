package semaphore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// starting is the start of some jobs of a resource, of those that wait and of
// those whose holder is dead, in one transaction.
type starting struct {
	s      *store
	r      Resource
	rows   []jobRow
	queued int    // of the rows wait: only those change counters
	owner  string // the same for all, and new for each start: it tells ours from those of others
	yields bool   // it is given up where others are at the resource again and again

	// Of the transaction that was made last.
	token int64 // of the first; those of the others follow
	until time.Time
	asked time.Time // the deadlines count from before the end is reckoned
	first time.Time // and of the one that was made first
}

// prepare makes the writes of the jobs' rows. Where conflicts with other
// transactions delay a start, they are made anew: with later tokens, and a
// whole lease.
func (b *starting) prepare() (writes []types.TransactWriteItem) {
	now := b.s.clock()
	b.asked, b.until, b.token = time.Now(), now.Add(b.s.cfg.Lease), max(b.r.token+1, now.UnixMicro())
	if b.first.IsZero() {
		b.first = b.asked
	}
	for i, j := range b.rows {
		w := b.s.core.NewWrite()
		j.asRead(w)
		w.Set(aState, ddb.Text(running))
		w.Set(aAttempts, ddb.Integer(int64(j.attempts+1)))
		w.Set(aToken, ddb.Integer(b.token+int64(i)))
		w.Set(aUntil, ddb.Number(ddb.Seconds(b.until)))
		w.Set(aOwner, ddb.Text(b.owner))
		writes = append(writes, ddb.UpdateOf(update(w, j.key())))
	}
	return writes
}

// resource adds to the write of the resource what a start needs: greater tokens
// than any before, and room below the limit. more is by how much the running
// count grows in this transaction, of which others' ends may be a part.
func (b *starting) resource(w *ddb.Write, more int64) {
	first := w.Value(ddb.Integer(b.token))
	w.If("(attribute_not_exists(" + w.Name(aToken) + ") OR " + w.Name(aToken) + " < " + first + ")")
	w.Set(aToken, ddb.Integer(b.token+int64(len(b.rows))-1))
	if b.queued == 0 {
		return // those who are taken over are counted already
	}
	most := int64(b.r.Limit) - more
	w.If(w.Name(aRunning) + " BETWEEN " + w.Value(ddb.Integer(0)) + " AND " + w.Value(ddb.Integer(most)))
	limit := ddb.Integer(int64(b.r.Limit))
	switch {
	case b.r.fixed || b.s.cfg.Limit == 0:
		w.IfEqual(aLimit, limit)
	default:
		w.IfAbsent(aFixed)
		if b.r.stored != b.r.Limit {
			w.Set(aLimit, limit)
		}
	}
}

// asWritten takes tokens and ends from the rows: an attempt before the last one was
// applied, and may have written others.
func (b *starting) asWritten(images []ddb.Image) {
	row, err := parseJob(images[0].Item)
	if err == nil && row.token != b.token {
		b.token, b.until, b.asked = row.token, row.until, b.first
	}
}

// starts is how often a start is tried anew with what is left of it.
const starts = 10

// start starts jobs, as many of them as can be. raced says that some of them
// were not as they had been read. What is known of the resource is brought up
// to date.
func (s *store) start(ctx context.Context, r *Resource, rows []jobRow, yields bool) (jobs []*job, raced bool, err error) {
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	for range starts {
		if rows = fitting(rows, r.Limit-r.Running); len(rows) == 0 {
			return nil, raced, nil
		}
		b := &starting{s: s, r: *r, rows: rows, owner: stored.NewIDAt(s.cfg.Owner, s.clock()), yields: yields}
		c := change{start: b, writes: make([]types.TransactWriteItem, len(rows))}
		for _, j := range rows {
			c.size += j.size
			if j.state == queued {
				b.queued, c.queued, c.running = b.queued+1, c.queued-1, c.running+1
			}
		}
		res := s.submit(ctx, r.Name, c)
		// The owner tells that an earlier attempt was applied, and all of it.
		ours := res.Outcome == ddb.Condition && text(res.Images[0].Item, aOwner) == b.owner
		switch {
		case res.Outcome == ddb.Applied || ours:
			if ours {
				b.asWritten(res.Images)
			}
			r.Queued, r.Running, r.token = max(r.Queued-b.queued, 0), r.Running+b.queued, b.token+int64(len(rows))-1
			for i, j := range rows {
				if j.state == running {
					s.core.Observe.TakenOver(ctx, telemetry.Job, 1, slog.String("resource", r.Name), slog.String("job", j.id), slog.String("from", stored.Record{By: j.owner}.Owner()))
				}
				jobs = append(jobs, s.newJob(ctx, r.Name, j, b.token+int64(i), b.until, b.asked))
			}
			return jobs, raced, nil
		case res.Outcome == ddb.Refused && yields && ddb.Conflicted(res.Err):
			return nil, true, nil
		case res.Outcome != ddb.Condition:
			// If it was started all the same, it runs without a holder, and is taken
			// over when its lease is over. Nobody has worked on it.
			return nil, raced, fmt.Errorf("resource %q: a job could not be started: %w", r.Name, res.Err)
		}
		if found := res.Images[len(rows)]; found.Failed {
			if *r, err = parseResource(r.Name, found.Item, s.cfg); err != nil {
				return nil, raced, err
			}
			if !r.Paused.IsZero() {
				return nil, raced, nil
			}
		}
		var left []jobRow
		for i, j := range rows {
			if !res.Images[i].Failed {
				left = append(left, j)
			}
		}
		raced = raced || len(left) < len(rows)
		rows = left
	}
	return nil, true, nil
}

// fitting leaves as many rows that wait as there is room for.
func fitting(rows []jobRow, room int) []jobRow {
	return slices.DeleteFunc(slices.Clone(rows), func(j jobRow) bool {
		if j.state != queued {
			return false
		}
		room--
		return room < 0
	})
}

// deliver decodes the value of a started job. One that cannot be read fails.
func (s *store) deliver(ctx context.Context, j *job) error {
	err := s.read(ctx, j)
	if err == nil {
		return nil
	}
	return errors.Join(err, j.Fail(ctx, err))
}

// read decodes the value of a started job.
func (s *store) read(ctx context.Context, j *job) (err error) {
	if j.value, err = s.decode(text(j.row.row, aJob)); err != nil {
		s.skipped(ctx, "value", telemetry.EventQuarantine, "a job's value cannot be read", j.resource, slog.String("job", j.row.id), slog.Int("attempt", j.Attempt()), slog.String("error", err.Error()))
	}
	return err
}
