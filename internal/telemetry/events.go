package telemetry

import (
	"context"
	"log/slog"
	"time"
)

// Names of log events: the attribute "event" of a record. They stay, whatever the text of
// the message becomes.
const (
	eventRetry      = "dynahold.request.retry"
	eventLate       = "dynahold.renewal.late"
	eventLost       = "dynahold.lock.lost"
	eventExpired    = "dynahold.lock.expired"
	eventTakenOver  = "dynahold.lock.taken_over"
	eventBroken     = "dynahold.lock.broken"
	eventUnknown    = "dynahold.outcome.unknown"
	EventDeadLetter = "dynahold.job.dead_lettered"
	EventFailed     = "dynahold.job.failed"
	EventQuarantine = "dynahold.job.quarantined"
	EventAside      = "dynahold.resource.left_aside"
	EventHandler    = "dynahold.handler.stuck"
	EventDispatcher = "dynahold.dispatcher.failed"
	EventNoTTL      = "dynahold.table.no_ttl"
	EventNoImage    = "dynahold.endpoint.no_image"
)

// Event logs something under a stable name.
func (o *Observer) Event(ctx context.Context, level slog.Level, name, text string, attrs ...slog.Attr) {
	if o == nil || !o.Log.Enabled(ctx, level) {
		return
	}
	first := []slog.Attr{slog.String("event", name)}
	if o.Table != "" { // a transaction has none: its error names the items
		first = append(first, slog.String("table", o.Table))
	}
	o.Log.LogAttrs(ctx, level, "dynahold: "+text, append(first, attrs...)...)
}

// Ended tells that something held ended before its holder was done. why is [Lost] or
// [Expired], which are what it is to be blamed on.
func (o *Observer) Ended(kind, why string, cause error, what string, which []slog.Attr) {
	ctx := context.Background()
	if o.Measures() {
		o.metrics.lost.Add(ctx, 1, o.with(set{kind: kind, reason: why}).add...)
	}
	name, text := eventLost, "a "+what+" was lost to another"
	if why == Expired {
		name, text = eventExpired, "the lease of a "+what+" was over before it was given back"
	}
	o.Event(ctx, slog.LevelWarn, name, text, append(which, slog.String("kind", kind), slog.Any("error", cause))...)
}

// Late tells that a renewal failed.
func (o *Observer) Late(ctx context.Context, kind string, cause error, what string, which []slog.Attr) {
	if o.Measures() {
		o.metrics.late.Add(ctx, 1, o.with(set{kind: kind}).add...)
	}
	o.Event(ctx, slog.LevelWarn, eventLate, "a "+what+" could not be renewed yet", append(which, slog.String("kind", kind), slog.Any("error", cause))...)
}

// TakenOver tells that n of what dead holders had were taken from them.
func (o *Observer) TakenOver(ctx context.Context, kind string, n int, which ...slog.Attr) {
	if o.Measures() {
		o.metrics.takenOver.Add(ctx, int64(n), o.with(set{kind: kind}).add...)
	}
	o.Event(ctx, slog.LevelWarn, eventTakenOver, "the lease of "+held(kind)+" was over, and it was taken over", append(which, slog.String("kind", kind))...)
}

// Broken tells that something held was ended by somebody who does not take it: an [Operator],
// or a writer that found a lock [Expired].
func (o *Observer) Broken(ctx context.Context, kind, reason string, which ...slog.Attr) {
	if o.Measures() {
		o.metrics.broken.Add(ctx, 1, o.with(set{kind: kind, reason: reason}).add...)
	}
	o.Event(ctx, slog.LevelWarn, eventBroken, held(kind)+" was broken", append(which, slog.String("kind", kind), slog.String("reason", reason))...)
}

// held is what is held of a kind.
func held(kind string) string {
	if kind == Ticket || kind == Permit || kind == Job {
		return "a " + kind
	}
	return "a lock"
}

// DeadLettered tells that a job failed for good.
func (o *Observer) DeadLettered(ctx context.Context, resource, job string, attempts int, why string) {
	if o.Measures() {
		o.metrics.deadLettered.Add(ctx, 1, o.with(set{kind: Job}).add...)
	}
	o.Event(ctx, slog.LevelError, EventDeadLetter, "a job failed for good, and is a dead letter",
		slog.String("resource", resource), slog.String("job", job), slog.Int("attempts", attempts), slog.String("error", why))
}

// unknownOutcome tells that nobody knows whether a change was applied.
func (o *Observer) unknownOutcome(ctx context.Context, kind, operation string, err error) {
	if o.Measures() {
		o.metrics.unknown.Add(ctx, 1, o.with(set{kind: kind, operation: operation}).add...)
	}
	o.Event(ctx, slog.LevelError, eventUnknown, "nobody knows whether a change was applied",
		slog.String("kind", kind), slog.String("operation", operation), slog.Any("error", err))
}

// retried tells that an attempt of a request is repeated.
func (o *Observer) retried(ctx context.Context, op string, n int, pause time.Duration, err error) {
	o.Event(ctx, slog.LevelDebug, eventRetry, "repeating a request",
		slog.String("operation", op), slog.Int("attempt", n), slog.Duration("delay", pause), slog.Any("error", err))
}
