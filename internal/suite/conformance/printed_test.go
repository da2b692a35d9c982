package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

// hushed are settings with a secret.
var hushed = repo.TableConfig{PageSecret: []byte("hush, sixteen bytes and more"), AllowReplicas: true}

// Whatever is handed out can be printed: there is no secret in it, none of what is
// nobody's business, and it is not read while others write it.
func TestWhatIsHandedOutIsPrintedWithoutItsInsides(t *testing.T) {
	t.Parallel()
	f, ctx := fixture.New(t), t.Context()
	table := rig.Must(repo.NewTable[fixture.Account](f.Client, f.Table, hushed))(t)
	locks := rig.Must(mutex.New(f.Client, f.Table+"-l", mutex.Config{Table: hushed}))(t)
	queue := rig.Must(ticket.New(f.Client, f.Table+"-t", ticket.Config{Table: hushed}))(t)
	work := fixture.OpenWork[string](t, f.Client, f.Table+"-s", jobs.Config{Table: hushed})
	runs := rig.Must(once.New(f.Client, f.Table+"-o", once.Config{Table: hushed}))(t)
	for _, made := range []interface{ EnsureTable(context.Context) error }{locks, queue, work, runs} {
		rig.Is(t, made.EnsureTable(ctx))
	}
	all := map[string]any{
		"settings": hushed, "settings of locks": mutex.Config{Table: hushed}, "of queues": &ticket.Config{Table: hushed}, "of jobs": jobs.Config{Table: hushed}, "of permits": semaphore.Config{Table: hushed}, "of runs": once.Config{Table: hushed},
		"table": table, "key table": table.KeyTable, "locks": locks, "queues": queue, "jobs": work.Queue, "semaphore": work.OfPermits, "store": runs,
	}
	key := rig.Must(rig.Must(optimistic.New(table, optimistic.Config{}))(t).Create(ctx, fixture.Account{ID: "p", Seq: 1, Note: "hush"}))(t)
	items := rig.Must(lockedread.New(table, lockedread.Config{}))(t)
	held := rig.Must(items.Acquire(ctx, table.KeyOf(key)))(t)
	defer func() { _ = held.Release(ctx) }()
	lock := rig.Must(locks.Lock(ctx, "name"))(t)
	defer func() { _ = lock.Unlock(ctx) }()
	rig.Is(t, lock.SetPayload(ctx, []byte("hush")))
	group := rig.Must(locks.LockAll(ctx, "b", "a"))(t)
	defer func() { _ = group.Unlock(ctx) }()
	turn := rig.Must(queue.Lock(ctx, "entity"))(t)
	defer func() { _ = turn.Done(ctx) }()
	waiting := rig.Must(queue.Join(ctx, "entity"))(t)
	defer func() { _ = waiting.Leave(ctx) }()
	rig.Is(t, work.SetLimit(ctx, "r", 3))
	permit := rig.Must(work.Acquire(ctx, "r"))(t)
	defer func() { _ = permit.Release(ctx) }()
	_ = rig.Must(work.Enqueue(ctx, "r", "hush"))(t)
	job := rig.Must(work.Next(ctx, "r"))(t)
	defer func() { _ = job.Done(ctx) }()
	all["items"], all["hold"], all["lock"], all["group"], all["turn"], all["ticket"], all["permit"], all["job"] = items, held, lock, group, turn, waiting, permit, job
	all["resource"] = rig.Must(work.Resource(ctx, "r"))(t)
	all["resource of permits"] = rig.Must(work.OfPermits.Resource(ctx, "r"))(t)
	for tally, err := range work.Audit(ctx) {
		rig.Is(t, err)
		all["tally"] = tally
	}
	_ = rig.Must(once.Do(ctx, runs, "id", func(_ context.Context, run once.Run) (int, error) { all["run"] = run; return 1, nil }))(t)
	rig.Is(t, txn.Run(ctx, func(_ context.Context, tx *txn.Tx) error { all["transaction"] = tx; return nil }))
	for name, value := range all {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			said(t, name+" by "+verb, fmt.Sprintf(verb, value), name != "hold" && name != "items" && name != "store" && name != "transaction")
		}
		var text bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("x", "value", value)
		slog.New(slog.NewJSONHandler(&text, nil)).Info("x", "value", value)
		said(t, name+" in a log", text.String(), false)
	}
}

// said looks for secrets in what was printed, and, where it is told to be plain, for
// addresses and what is not exported.
func said(t *testing.T, what, text string, plain bool) {
	t.Helper()
	secret := fmt.Sprintf("%d", []byte("hush"))
	for _, no := range []string{"hush", secret[1 : len(secret)-1], fmt.Sprintf("%x", "hush"), "aHVz", "0x68, 0x75, 0x73"} {
		if strings.Contains(text, no) {
			t.Errorf("%s: %s", what, text)
		}
	}
	if plain && (strings.Contains(text, "0xc") || strings.Contains(text, "permits:") || strings.Contains(text, "core:")) {
		t.Errorf("%s: %s", what, text)
	}
}
