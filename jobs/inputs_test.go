package jobs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

func TestBadSettings(t *testing.T) {
	b := newBench(t)
	for name, cfg := range map[string]jobs.Config{
		"negative limit":           {Limit: -1},
		"negative workers":         {Workers: -1},
		"lease too short":          {Lease: time.Millisecond},
		"less than three attempts": {Lease: 3 * time.Second, Table: repo.TableConfig{AttemptTimeout: 2 * time.Second}},
		"negative retry":           {Retry: jobs.Retry{Attempts: -1}},
		"retry bounds":             {Retry: jobs.Retry{Min: time.Hour, Max: time.Second}},
		"owner":                    {Owner: strings.Repeat("x", 300)},
		"owner, not UTF-8":         {Owner: "\xff"},
		"TTL on the counter":       {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "queued"}}},
		"TTL on a permit":          {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "p_x"}}},
		"TTL on the end of a job":  {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "until"}}},
		"TTL on a key":             {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "sk"}}},
	} {
		if _, err := jobs.New[int](b.Client, b.Table, cfg); !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	s := b.both(t, jobs.Config{})
	for _, limit := range []int{0, -3} {
		rig.Is(t, s.SetLimit(t.Context(), "staging", limit), repo.ErrConfig)
	}
	for _, name := range []string{"", "\xff", strings.Repeat("x", 1025)} {
		refuse(t, s, repo.ErrKey, name, deploy{})
		_, err := s.Acquire(t.Context(), name)
		rig.Is(t, err, repo.ErrKey)
		_, err = s.Next(t.Context(), name)
		rig.Is(t, err, repo.ErrKey)
		rig.Is(t, s.SetLimit(t.Context(), name, 1), repo.ErrKey)
		rig.Is(t, s.Requeue(t.Context(), name, "x"), repo.ErrKey)
	}
	longest := strings.Repeat("x", 1024)
	enqueue(t, s, longest, 1)
	rig.Is(t, rig.Must(s.Next(t.Context(), longest))(t).Done(t.Context()))
	rig.Is(t, s.Run(t.Context(), nil), repo.ErrConfig)
}

func TestTableWithoutASortKey(t *testing.T) {
	b := bench{rig.New(t)}
	table := rig.Must(repo.NewKeyTable(b.Client, b.Table, repo.KeySchema{Partition: repo.KeyAttribute{Name: "pk"}}, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	s := b.open(t, jobs.Config{})
	rig.Is(t, s.EnsureTable(t.Context()), repo.ErrSchema)
	refuse(t, s, repo.ErrSchema, "staging", deploy{})
	missing := rig.Must(jobs.New[deploy](b.Client, b.Table+"-none", jobs.Config{}))(t)
	refuse(t, missing, repo.ErrNoTable, "staging", deploy{})
	rig.Is(t, missing.Run(t.Context(), func(context.Context, *jobs.Job[deploy]) error { return nil }), repo.ErrNoTable)
}

func TestJobsThatJSONHasNothingFor(t *testing.T) {
	b := newBench(t)
	_, err := jobs.New[struct{ C chan int }](b.Client, b.Table, jobs.Config{})
	rig.Is(t, err, repo.ErrSchema)
}
