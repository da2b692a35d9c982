package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// starting is the start of some jobs of a resource, of those that wait and of
// those whose holder is dead, in one transaction.
type starting struct {
	s      *store
	r      resources.Row
	rows   []jobRow
	queued int    // of the rows wait: only those change counters
	owner  string // the same for all, and new for each start: it tells ours from those of others

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
	now := b.s.table.Clock()
	b.asked, b.until, b.token = time.Now(), now.Add(b.s.cfg.Lease), max(b.r.Token+1, now.UnixMicro())
	if b.first.IsZero() {
		b.first = b.asked
	}
	for i, j := range b.rows {
		w := b.s.table.Core.NewWrite()
		j.asRead(w)
		w.Set(aState, ddb.Text(running))
		w.Set(aAttempts, ddb.Integer(int64(j.attempts+1)))
		w.Set(aToken, ddb.Integer(b.token+int64(i)))
		w.Set(aUntil, ddb.Number(ddb.Seconds(b.until)))
		w.Set(aOwner, ddb.Text(b.owner))
		writes = append(writes, ddb.UpdateOf(resources.Update(w, j.key())))
	}
	return writes
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
func (s *store) start(ctx context.Context, r *resources.Row, rows []jobRow, how manner) (jobs []*job, raced bool, err error) {
	ctx, cancel := ddb.WithGrace(ctx, ddb.Settle)
	defer cancel()
	for range starts {
		if rows = fitting(rows, r.Limit-r.Running); len(rows) == 0 {
			return nil, raced, nil
		}
		b, c := s.starting(*r, rows)
		c.givesWay = how == givesWay
		res := s.table.Core.Looked(ctx, rows[0].key(), func(row ddb.Item) bool { return resources.Text(row, aOwner) != b.owner }, s.submit(ctx, r.Name, c))
		switch b.judge(res, c.givesWay) {
		case started:
			return b.begin(ctx, r), raced, nil
		case startedBefore:
			b.asWritten(res.Images)
			return b.begin(ctx, r), raced, nil
		case leftToOthers:
			return nil, true, nil
		case noAnswer:
			// If it was started all the same, it runs without a holder, and is taken
			// over when its lease is over. Nobody has worked on it.
			return nil, raced, fmt.Errorf("resource %q: a job could not be started: %w", r.Name, res.Err)
		}
		left, err := b.left(r, res.Images)
		if err != nil || !r.Paused.IsZero() {
			return nil, raced, err
		}
		raced = raced || len(left) < len(rows)
		rows = left
	}
	return nil, true, nil
}

// starting makes the start of some jobs.
func (s *store) starting(r resources.Row, rows []jobRow) (*starting, change) {
	b := &starting{s: s, r: r, rows: rows, owner: stored.NewIDAt(s.cfg.Owner, s.table.Clock())}
	c := change{start: b, writes: make([]types.TransactWriteItem, len(rows))}
	for _, j := range rows {
		c.size += j.size
		if j.state == queued {
			b.queued++
		}
	}
	c.counts = resources.Counts{Queued: -int64(b.queued), Running: int64(b.queued)}
	return b, c
}

// startVerdict is what the answer to a start means.
type startVerdict int

const (
	noAnswer startVerdict = iota // that decides
	started
	startedBefore // by an earlier attempt, and all of it
	leftToOthers
	refused // some of it is not as it was read
)

// judge tells them: the owner tells that an earlier attempt was applied.
func (b *starting) judge(res ddb.Result, givesWay bool) startVerdict {
	switch {
	case res.Outcome == ddb.Applied:
		return started
	case res.Outcome == ddb.Condition && resources.Text(res.Images[0].Item, aOwner) == b.owner:
		return startedBefore
	case res.Outcome == ddb.Condition:
		return refused
	case res.Outcome == ddb.Refused && givesWay && ddb.Conflicted(res.Err):
		return leftToOthers
	}
	return noAnswer
}

// begin makes the jobs that were started.
func (b *starting) begin(ctx context.Context, r *resources.Row) (jobs []*job) {
	r.Queued, r.Running, r.Token = max(r.Queued-b.queued, 0), r.Running+b.queued, b.token+int64(len(b.rows))-1
	for i, j := range b.rows {
		if at, ok := madeAt(withoutLevel(j.place)); ok && j.state == queued {
			b.s.table.Core.Observe.StartedJob(ctx, b.s.named(r.Name), max(b.s.table.Clock().Sub(at), 0))
		}
		if j.state == running {
			b.s.table.Core.Observe.TakenOver(ctx, telemetry.Job, 1, slog.String("resource", r.Name), slog.String("job", j.id), slog.String("from", stored.Record{By: j.owner}.Owner()))
		}
		jobs = append(jobs, b.s.newJob(ctx, r.Name, j, b.token+int64(i), b.until, b.asked))
	}
	return jobs
}

// named is a resource where metrics are to name it, and "" elsewhere.
func (s *store) named(resource string) string {
	if slices.Contains(s.cfg.NameResources, resource) {
		return resource
	}
	return ""
}

// left are the rows that have not refused the start; the resource is brought up to date if
// it has.
func (b *starting) left(r *resources.Row, images []ddb.Image) (left []jobRow, err error) {
	if found := images[len(b.rows)]; found.Failed {
		if *r, err = b.s.table.Parse(r.Name, found.Item); err != nil {
			return nil, err
		}
	}
	for i, j := range b.rows {
		if !images[i].Failed {
			left = append(left, j)
		}
	}
	return left, nil
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
	if j.value, err = s.decode(resources.Text(j.row.row, aJob)); err != nil {
		s.skipped(ctx, "value", telemetry.EventQuarantine, "a job's value cannot be read", j.resource, slog.String("job", j.row.id), slog.Int("attempt", j.Attempt()), slog.String("error", err.Error()))
	}
	return err
}
