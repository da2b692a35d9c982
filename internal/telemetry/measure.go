package telemetry

import (
	"context"
	"time"
)

// Waited records how long a caller waited for others: its reason is [ToCaller] if they are
// of this process, [ToProcess] if they hold what it wants.
func (o *Observer) Waited(ctx context.Context, kind, reason string, d time.Duration) {
	if o.Measures() {
		o.metrics.waits.Record(ctx, d.Seconds(), o.with(set{kind: kind, reason: reason}).record...)
	}
}

// Acquired counts what was taken.
func (o *Observer) Acquired(kind string) {
	if o.Measures() {
		o.metrics.acquired.Add(context.Background(), 1, o.with(set{kind: kind}).add...)
	}
}

// Held records how long something was held that has ended now.
func (o *Observer) Held(kind string, d time.Duration) {
	if o.Measures() {
		o.metrics.locks.Record(context.Background(), d.Seconds(), o.with(set{kind: kind}).record...)
	}
}

// HandedOn counts a lock that goes on without being free, [ToCaller] or [ToProcess].
func (o *Observer) HandedOn(ctx context.Context, kind, to string) {
	if o.Measures() {
		o.metrics.handedOn.Add(ctx, 1, o.with(set{kind: kind, reason: to}).add...)
	}
}

// Conflict counts a write that others' writes refused.
func (o *Observer) Conflict(ctx context.Context, kind string) {
	if o.Measures() {
		o.metrics.conflicts.Add(ctx, 1, o.with(set{kind: kind}).add...)
	}
}

// Batch records how many changes a write carried.
func (o *Observer) Batch(ctx context.Context, kind string, n int) {
	if o.Measures() {
		o.metrics.batches.Record(ctx, int64(n), o.with(set{kind: kind}).record...)
	}
}

// Depth records how many were in a queue before one who came.
func (o *Observer) Depth(ctx context.Context, kind string, n int) {
	if o.Measures() {
		o.metrics.depths.Record(ctx, int64(n), o.with(set{kind: kind}).record...)
	}
}

// Jobs records what a look at all resources has found.
func (o *Observer) Jobs(ctx context.Context, queued, running, dead int, oldest time.Duration) {
	if !o.Measures() {
		return
	}
	for state, n := range map[string]int{"queued": queued, "running": running, "dead": dead} {
		o.metrics.jobs.Record(ctx, int64(n), o.with(set{state: state}).record...)
	}
	o.metrics.oldest.Record(ctx, oldest.Seconds(), o.with(set{}).record...)
}

// Oldest records how long the oldest job of a resource waits.
func (o *Observer) Oldest(ctx context.Context, resource string, age time.Duration) {
	if o.Measures() {
		o.metrics.oldest.Record(ctx, age.Seconds(), o.with(set{resource: resource}).record...)
	}
}

// StartedJob records how long after its time a job has started; resource is "" where it is
// not to be named.
func (o *Observer) StartedJob(ctx context.Context, resource string, delay time.Duration) {
	if o.Measures() {
		o.metrics.starts.Record(ctx, delay.Seconds(), o.with(set{resource: resource}).record...)
	}
}

// Skipped counts something that was left aside so that the rest can go on: a row that
// cannot be read, a handler that does not return.
func (o *Observer) Skipped(ctx context.Context, what string) {
	if o.Measures() {
		o.metrics.skipped.Add(ctx, 1, o.with(set{reason: what}).add...)
	}
}
