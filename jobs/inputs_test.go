package jobs_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

func TestBadSettings(t *testing.T) {
	b := newBench(t)
	for name, cfg := range map[string]jobs.Config{
		"a number of tries":        {Wait: repo.Wait{Attempts: 3}},
		"negative limit":           {Limit: -1},
		"negative workers":         {Workers: -1},
		"lease too short":          {Lease: time.Millisecond},
		"less than three attempts": {Lease: 3 * time.Second, Table: repo.TableConfig{AttemptTimeout: 2 * time.Second}},
		"negative retry":           {Retry: jobs.Retry{Attempts: -1}},
		"retry bounds":             {Retry: jobs.Retry{Min: time.Hour, Max: time.Second}},
		"owner":                    {Owner: strings.Repeat("x", 300)},
		"owner, not UTF-8":         {Owner: "\xff"},
		"a poll without a unit":    {Poll: 2},
		"a handler's without one":  {HandlerTimeout: 30},
		"a retry's without one":    {Retry: jobs.Retry{Min: 1, Max: 300}},
		"clocks' without one":      {ClockSkew: 2},
		"an attempt's without one": {Table: repo.TableConfig{AttemptTimeout: 10}},
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
	if _, err := s.Enqueue(t.Context(), "staging", deploy{}); !strings.Contains(err.Error(), "key element") {
		t.Errorf("it does not say what is wrong with the table: %v", err)
	}
	missing := rig.Must(jobs.New[deploy](b.Client, b.Table+"-none", jobs.Config{}))(t)
	refuse(t, missing, repo.ErrNoTable, "staging", deploy{})
	rig.Is(t, missing.Run(t.Context(), func(context.Context, *jobs.Job[deploy]) error { return nil }), repo.ErrNoTable)
}

func TestJobsThatJSONHasNothingFor(t *testing.T) {
	b := newBench(t)
	_, err := jobs.New[struct{ n int }](b.Client, b.Table, jobs.Config{})
	rig.Is(t, err, repo.ErrSchema) // each would arrive as 0
	_, err = jobs.New[struct{ C chan int }](b.Client, b.Table, jobs.Config{})
	rig.Is(t, err, repo.ErrSchema)
}

// What makes no sense is refused by an error that says so, before anything is sent.
func TestHostileInputs(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	ctx, long := t.Context(), strings.Repeat("x", 1025)
	far := time.Date(11_000, 1, 1, 0, 0, 0, 0, time.UTC)
	enqueue := func(resource string, o ...jobs.Option) func() error {
		return func() error { _, err := s.Enqueue(ctx, resource, deploy{}, o...); return err }
	}
	many := func(resource string, all []deploy, o ...jobs.Option) func() error {
		return func() error { _, err := s.EnqueueMany(ctx, resource, all, o...); return err }
	}
	in := func(act func(*jobs.View[deploy]) error) func() error {
		return func() error {
			return txn.Run(ctx, func(_ context.Context, tx *txn.Tx) error { return act(s.In(tx)) })
		}
	}
	status := func(resource, id string) func() error {
		return func() error { _, err := s.Status(ctx, resource, id); return err }
	}
	cron := func(spec string) func() error { return func() error { _, err := jobs.Cron(spec); return err } }
	run := func(name string, schedule jobs.Schedule, job func(time.Time) (string, deploy, error)) func() error {
		return func() error {
			q := b.open(t, jobs.Config{})
			q.Periodic(name, schedule, job)
			return q.Run(ctx, func(context.Context, *jobs.Job[deploy]) error { return nil })
		}
	}
	tick := func(time.Time) (string, deploy, error) { return "mail", deploy{}, nil }
	huge := deploy{Version: strings.Repeat("x", 500_000)}
	for name, c := range map[string]struct {
		call func() error
		want error
	}{
		"no id":                       {enqueue("mail", jobs.WithID("")), repo.ErrKey},
		"ids of many":                 {enqueue("mail", jobs.WithIDs([]string{"x"})), repo.ErrConfig},
		"an id that is no key":        {enqueue("mail", jobs.WithID(long)), repo.ErrKey},
		"a unique key that is no key": {enqueue("mail", jobs.Unique(long)), repo.ErrKey},
		"not UTF-8":                   {enqueue("mail", jobs.Unique("\xff")), repo.ErrKey},
		"minus attempts":              {enqueue("mail", jobs.Attempts(-1)), repo.ErrConfig},
		"a negative timeout":          {enqueue("mail", jobs.Timeout(-time.Second)), repo.ErrConfig},
		"kept for less than nothing":  {enqueue("mail", jobs.Keep(-time.Second)), repo.ErrConfig},
		"kept for 30 of nothing":      {enqueue("mail", jobs.Keep(30)), repo.ErrConfig},
		"after the end of time":       {enqueue("mail", jobs.At(far)), repo.ErrConfig},
		"the first of two options":    {enqueue("mail", jobs.Priority(9), jobs.Priority(1)), repo.ErrConfig},
		"many of no resource":         {many("", nil), repo.ErrKey},
		"many, one too large":         {many("mail", []deploy{{}, huge}), repo.ErrTooLarge},
		"many after the end of time":  {many("mail", []deploy{{}, {}}, jobs.At(far)), repo.ErrConfig},
		"moved beyond the end":        {func() error { return s.Reschedule(ctx, "mail", "x", far) }, repo.ErrConfig},
		"moved without an id":         {func() error { return s.Reschedule(ctx, "mail", "", time.Now()) }, repo.ErrKey},
		"cancelled without an id":     {func() error { return s.Cancel(ctx, "mail", "") }, repo.ErrKey},
		"in a transaction, too late":  {in(func(v *jobs.View[deploy]) error { return v.Reschedule(ctx, "mail", "x", far) }), repo.ErrConfig},
		"in a transaction, no name":   {in(func(v *jobs.View[deploy]) error { return v.Cancel(ctx, "", "x") }), repo.ErrKey},
		"in a transaction, ids of many": {in(func(v *jobs.View[deploy]) error {
			_, err := v.Enqueue(ctx, "mail", deploy{}, jobs.WithIDs([]string{"x"}))
			return err
		}), repo.ErrConfig},
		"in a transaction, the key": {in(func(v *jobs.View[deploy]) error {
			_, err := v.Enqueue(ctx, "mail", deploy{}, jobs.Unique(long))
			return err
		}), repo.ErrKey},
		"no resource's job":       {status("", "x"), repo.ErrKey},
		"no job":                  {status("mail", ""), repo.ErrKey},
		"a zone without fields":   {cron("CRON_TZ=UTC"), repo.ErrConfig},
		"a short zone":            {cron("TZ="), repo.ErrConfig},
		"a zone that is none":     {cron("TZ= 0 0 * * *"), nil}, // UTC
		"six fields":              {cron("* * * * * *"), repo.ErrConfig},
		"a day that never comes":  {cron("0 0 30 2 *"), repo.ErrConfig},
		"every less than nothing": {run("x", jobs.Every(-time.Hour), tick), repo.ErrConfig},
		"no schedule":             {run("x", jobs.Schedule{}, tick), repo.ErrConfig},
		"no name":                 {run("", jobs.Every(time.Hour), tick), repo.ErrConfig},
		"a name that is no key":   {run(long, jobs.Every(time.Hour), tick), repo.ErrKey},
		"no function":             {run("x", jobs.Every(time.Hour), nil), repo.ErrConfig},
	} {
		t.Run(name, func(t *testing.T) {
			b.Count.Reset()
			err := c.call()
			if c.want == nil {
				rig.Is(t, err)
			} else {
				rig.Is(t, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), `"sk") is empty`) {
				t.Errorf("it names an attribute, and not the id: %v", err)
			}
			if n := b.Count.Total(); n != 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// What is extreme, and makes sense, does what it says.
func TestExtremeInputs(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Keep: math.MaxInt64})
	for _, o := range [][]jobs.Option{{jobs.After(-time.Hour)}, {jobs.After(math.MinInt64)}, {jobs.At(time.Time{})}, {jobs.At(time.Unix(-1<<40, 0))}, {jobs.Keep(math.MaxInt64)},
		{jobs.Timeout(math.MaxInt64), jobs.Attempts(1_000_000_000)}} {
		id := put(t, s, "mail", deploy{}, o...)
		j := rig.Must(s.Next(t.Context(), "mail"))(t)
		if j.ID() != id {
			t.Errorf("%v, want %s", j, id)
		}
		rig.Is(t, j.Done(t.Context()))
		if got := rig.Must(s.Status(t.Context(), "mail", id))(t); got.State != jobs.StateDone {
			t.Errorf("%+v", got)
		}
	}
	put(t, s, "mail", deploy{}, jobs.After(math.MaxInt64))
	wantLater(t, s, "mail", 1, 1)
	// A schedule that makes no sense and comes when Run has begun harms nobody.
	ctx, cancel := context.WithCancel(t.Context())
	q := b.open(t, jobs.Config{Poll: time.Millisecond, Resources: map[string]int{"parcels": 1}})
	put(t, q, "parcels", deploy{})
	rig.Is(t, q.Run(ctx, func(context.Context, *jobs.Job[deploy]) error {
		q.Periodic("x", jobs.Every(0), nil)
		time.AfterFunc(50*time.Millisecond, cancel)
		return nil
	}))
}
