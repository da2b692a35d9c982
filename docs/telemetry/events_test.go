package telemetry_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// journal is a log that keeps what it is told, by event.
type journal struct {
	mu     sync.Mutex
	events map[string][]slog.Record // guarded by mu
}

func (*journal) Enabled(context.Context, slog.Level) bool { return true }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler     { return j }
func (j *journal) WithGroup(string) slog.Handler          { return j }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events[attr(r, "event")] = append(j.events[attr(r, "event")], r)
	return nil
}

func attr(r slog.Record, name string) (value string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == name {
			value = a.Value.String()
		}
		return true
	})
	return value
}

func has(r slog.Record, name string) (yes bool) {
	r.Attrs(func(a slog.Attr) bool { yes = yes || a.Key == name; return !yes })
	return yes
}

// TestEventsHaveTheirNames lets everything happen to a program, and looks at what its log
// was told.
func TestEventsHaveTheirNames(t *testing.T) {
	log := &journal{events: map[string][]slog.Record{}}
	cfg := repo.TableConfig{Logger: slog.New(log), MeterProvider: noop.NewMeterProvider(), TracerProvider: tracenoop.NewTracerProvider()}
	open(t, cfg, func(string) bool { return true })
	log.mu.Lock()
	defer log.mu.Unlock()
	documented := table(t, "event")
	for _, name := range []string{
		"dynahold.lock.lost", "dynahold.lock.expired", "dynahold.lock.taken_over", "dynahold.lock.broken", "dynahold.renewal.late", "dynahold.outcome.unknown",
		"dynahold.job.failed", "dynahold.job.dead_lettered", "dynahold.job.quarantined", "dynahold.dispatcher.failed", "dynahold.request.retry",
	} {
		if len(log.events[name]) == 0 {
			t.Errorf("%s did not happen", name)
		}
	}
	levels := map[slog.Level]string{slog.LevelDebug: "debug", slog.LevelWarn: "warning", slog.LevelError: "error"}
	for name, records := range log.events {
		row := documented[name]
		if row == nil {
			t.Errorf("event %q is not documented: %s", name, records[0].Message)
			continue
		}
		for _, r := range records {
			if attr(r, "kind") == "txn" { // of several tables
				if tabled := has(r, "table"); tabled || !strings.Contains(attr(r, "error"), `"lemon"`) {
					t.Errorf("%s: table %v, %v", name, tabled, r)
				}
				continue
			}
			if strings.Contains(r.Message, "pessimistic") || strings.Contains(r.Message, "a once") || levels[r.Level] != row[0] || attr(r, "table") == "" || !strings.HasPrefix(r.Message, "dynahold: ") {
				t.Errorf("%s: level %v, table %q, %q", name, r.Level, attr(r, "table"), r.Message)
			}
			for _, want := range strings.Split(strings.SplitN(row[1], ", and", 2)[0], ", ") {
				if plain := want != "" && !strings.Contains(want, " "); plain && !slices.Contains([]string{"key", "from", "lost"}, want) && attr(r, want) == "" {
					t.Errorf("%s has no %q: %v", name, want, r)
				}
			}
		}
	}
	var broken []string
	for _, r := range log.events["dynahold.lock.broken"] {
		broken = append(broken, attr(r, "kind"))
	}
	for _, kind := range []string{"pessimistic", "ticket", "permit", "job"} {
		if !slices.Contains(broken, kind) {
			t.Errorf("that a %s was broken is not in the log: only of %v", kind, broken)
		}
	}
	for _, r := range log.events["dynahold.lock.lost"] {
		if attr(r, "kind") == "pessimistic" && (attr(r, "key") == "" || attr(r, "token") == "") {
			t.Errorf("a lost lock that cannot be told: %v", r)
		}
	}
}

// TestAnUnknownOutcomeIsToldByTheCallWhoseItIs: that a function of the program has made a
// call whose outcome is unknown, and returns its error, that call has told. Of the one around
// it is known that nothing was written.
func TestAnUnknownOutcomeIsToldByTheCallWhoseItIs(t *testing.T) {
	log := &journal{events: map[string][]slog.Record{}}
	cfg := repo.TableConfig{Logger: slog.New(log), MeterProvider: noop.NewMeterProvider(), TracerProvider: tracenoop.NewTracerProvider()}
	s := newShop(t, cfg)
	key := s.put(t, "apple")
	audited := fmt.Errorf("audit: %w", repo.ErrOutcomeUnknown)
	change := func(context.Context, *product) error { return audited }
	for name, r := range map[string]repo.Repository[product]{
		"pessimistic":          rig.Must(pessimistic.New(s.table(t), pessimistic.Config{}))(t),
		"pessimistic, combine": rig.Must(pessimistic.New(s.table(t), pessimistic.Config{Combine: true}))(t),
		"optimistic":           rig.Must(optimistic.New(s.table(t), optimistic.Config{}))(t),
	} {
		if _, err := r.Update(t.Context(), key, change); repo.VerdictOf(err) != repo.NotWritten {
			t.Errorf("%s: %v", name, err)
		}
	}
	rig.Is(t, txn.Config{Logger: cfg.Logger}.Run(t.Context(), func(context.Context, *txn.Tx) error { return audited }), repo.ErrOutcomeUnknown)
	rows := s.rows(t)
	payments := rig.Must(once.New(rows.Client, rows.Table, once.Config{Table: cfg}))(t)
	rig.Is(t, payments.EnsureTable(t.Context()))
	_, err := once.Do(t.Context(), payments, "m1", func(context.Context, once.Run) (int, error) { return 0, audited })
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	rows = s.rows(t)
	q := rig.Must(jobs.New[int](rows.Client, rows.Table, jobs.Config{Retry: jobs.Retry{Attempts: 1}, Table: cfg}))(t)
	rig.Is(t, q.EnsureTable(t.Context()))
	rig.Must(q.Enqueue(t.Context(), "mail", 1))(t)
	ctx, cancel := context.WithCancel(t.Context())
	rig.Is(t, q.Run(ctx, func(context.Context, *jobs.Job[int]) error { defer cancel(); return audited }))
	for _, r := range log.events["dynahold.outcome.unknown"] {
		t.Errorf("a %s was told of: %v", attr(r, "kind"), r)
	}
}
