package telemetry

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are all metrics of the library.
type instruments struct {
	requests, calls, waits, locks, starts       metric.Float64Histogram
	batches, depths                             metric.Int64Histogram
	retries, conflicts, unknown, skipped, late  metric.Int64Counter
	acquired, lost, takenOver, broken, handedOn metric.Int64Counter
	deadLettered                                metric.Int64Counter
	jobs                                        metric.Int64Gauge
	oldest                                      metric.Float64Gauge
}

// Boundaries of buckets. Those of requests are what the conventions advise; waiting and
// holding takes from a millisecond to minutes.
var (
	requestSeconds = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}
	seconds        = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	powersOfTwo    = []float64{0, 1, 2, 4, 8, 16, 32, 64, 128, 256}
)

func newInstruments(m metric.Meter) (*instruments, error) {
	var failed []error
	duration := func(name, what string, boundaries []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(boundaries...))
		failed = append(failed, err)
		return h
	}
	sizes := func(name, unit, what string) metric.Int64Histogram {
		h, err := m.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(powersOfTwo...))
		failed = append(failed, err)
		return h
	}
	counter := func(name, unit, what string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		failed = append(failed, err)
		return c
	}
	i := &instruments{
		requests:     duration("db.client.operation.duration", "Duration of requests to DynamoDB, with their repetitions.", requestSeconds),
		retries:      counter("dynahold.request.retries", "{attempt}", "Attempts of requests that were repeated after an error."),
		calls:        duration("dynahold.call.duration", "Duration of calls of the library.", seconds),
		waits:        duration("dynahold.wait.duration", "Time for which a call that had to wait has waited for others.", seconds),
		locks:        duration("dynahold.lock.hold.duration", "Time for which locks, turns, permits and jobs were held.", seconds),
		acquired:     counter("dynahold.lock.acquired", "{lock}", "Locks, places in queues, permits and jobs that were taken."),
		lost:         counter("dynahold.lock.lost", "{lock}", "Locks, places in queues, permits and jobs that ended before their holder was done."),
		takenOver:    counter("dynahold.lock.taken_over", "{lock}", "Locks, places in queues, permits and jobs that were taken from a holder whose lease was over."),
		broken:       counter("dynahold.lock.broken", "{lock}", "Locks that were ended by somebody who did not take them."),
		handedOn:     counter("dynahold.lock.handed_on", "{lock}", "Locks that went from their holder to the next without being free."),
		late:         counter("dynahold.renewal.late", "{renewal}", "Renewals that failed, and were repeated where there was time."),
		conflicts:    counter("dynahold.conflicts", "{conflict}", "Writes that were refused because others wrote first."),
		unknown:      counter("dynahold.outcome.unknown", "{call}", "Calls that ended without knowing whether their change was applied."),
		starts:       duration("dynahold.job.start_delay", "Time from the moment at which a job could start, or was to, until it did.", seconds),
		batches:      sizes("dynahold.batch.size", "{change}", "Changes of callers that one write carried."),
		depths:       sizes("dynahold.queue.depth", "{waiter}", "Waiters ahead of one who came to a queue."),
		deadLettered: counter("dynahold.job.dead_lettered", "{job}", "Jobs that failed for good."),
		skipped:      counter("dynahold.skipped", "{item}", "What a dispatcher left aside because it cannot be read or handled."),
	}
	var err error
	i.jobs, err = m.Int64Gauge("dynahold.job.count", metric.WithUnit("{job}"), metric.WithDescription("Jobs of all resources of a table, as the last look of a dispatcher found them."))
	failed = append(failed, err)
	i.oldest, err = m.Float64Gauge("dynahold.job.oldest_age", metric.WithUnit("s"), metric.WithDescription("Age of the oldest job that waits, as the last looks of a dispatcher found it."))
	return i, errors.Join(append(failed, err)...)
}
