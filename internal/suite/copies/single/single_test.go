package single_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.Main(m) }

type (
	account = fixture.Account
	table   = *repo.Table[account]
)

// call is a change of one item, of which it can be seen how often it was applied: Balance
// is raised by one, or the item deleted.
type call struct {
	name string
	open func(t *testing.T, on table) func(ctx context.Context, was account) error
	// command does the same for those who need a table of mail.
	command func(t *testing.T, w *world) change
	// deletes: the item is gone once it is applied; makes: it needs none before.
	deletes, makes bool
	// unbound: nothing binds the request to what it has read, so a copy behind the writes
	// of others is applied again: the documented limit.
	unbound bool
	refused bool // its first write is refused, for others have written
	locks   bool // it changes the item under its lock
	// leavesNothing: of an item that is gone it says ErrNotFound, by whomever; the
	// documented limit of a delete that has not read the item.
	leavesNothing bool
}

func add(_ context.Context, a *account) error { a.Balance++; return nil }

func plusOne() expression.UpdateBuilder {
	return expression.Add(expression.Name("balance"), expression.Value(1))
}

type change = func(context.Context, account) error

func byVersion(cfg optimistic.Config, do func(*optimistic.Repository[account], context.Context, account) error) func(*testing.T, table) func(context.Context, account) error {
	return func(t *testing.T, on table) func(context.Context, account) error {
		r := rig.Must(optimistic.New(on, cfg))(t)
		return func(ctx context.Context, was account) error { return do(r, ctx, was) }
	}
}

func byEvent(do func(*nolock.Repository[account], context.Context, account) error) func(*testing.T, table) func(context.Context, account) error {
	return func(t *testing.T, on table) func(context.Context, account) error {
		r := rig.Must(nolock.New(on, nolock.Config{FailLocked: true}))(t)
		return func(ctx context.Context, was account) error { return do(r, ctx, was) }
	}
}

func byLock(cfg pessimistic.Config, do func(*pessimistic.Repository[account], context.Context, account) error) func(*testing.T, table) func(context.Context, account) error {
	return func(t *testing.T, on table) func(context.Context, account) error {
		once := cfg
		once.Wait.Attempts = 1
		r := rig.Must(pessimistic.New(on, once))(t)
		return func(ctx context.Context, was account) error { return do(r, ctx, was) }
	}
}

func calls() []call {
	fail := optimistic.Config{FailLocked: true}
	raised := func(was account) account { was.Balance++; return was }
	later := func(was account) account { was.Balance++; was.At = 1000; return was }
	var all []call
	for name, cfg := range map[string]optimistic.Config{"": fail, ", combining": {FailLocked: true, Combine: true}, ", warm": {FailLocked: true, Warm: 10}} {
		all = append(all, call{name: "optimistic.Update" + name, open: byVersion(cfg, func(r *optimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Update(ctx, fixture.Key, add)
			return err
		})})
	}
	all = append(all, commands()...)
	return append(all,
		call{name: "optimistic.Upsert", open: byVersion(fail, func(r *optimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Upsert(ctx, fixture.Key, add)
			return err
		})},
		call{name: "optimistic.Once.Update", open: byVersion(fail, func(r *optimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Once("id").Update(ctx, fixture.Key, add)
			return err
		})},
		call{name: "optimistic.Create", makes: true, open: byVersion(fail, func(r *optimistic.Repository[account], ctx context.Context, was account) error {
			was.Version = 0
			_, err := r.Create(ctx, raised(was))
			return err
		})},
		call{name: "optimistic.Delete", deletes: true, open: byVersion(fail, func(r *optimistic.Repository[account], ctx context.Context, _ account) error {
			return r.Delete(ctx, fixture.Key)
		})},
		call{name: "optimistic.Save", open: byVersion(fail, func(r *optimistic.Repository[account], ctx context.Context, was account) error {
			_, err := r.Save(ctx, raised(was))
			return err
		})},
		call{name: "optimistic.Get and Save", open: func(t *testing.T, on table) func(context.Context, account) error {
			r := rig.Must(optimistic.New(on, fail))(t)
			_, _ = r.Save(t.Context(), account{ID: "other", Seq: 1, At: 1, Version: 5}) // from its first one on the process remembers what it sees
			return func(ctx context.Context, _ account) error {
				is, err := r.Get(ctx, fixture.Key)
				if err == nil {
					_, err = r.Save(ctx, raised(is))
				}
				return err
			}
		}},
		call{name: "optimistic.Remove", deletes: true, leavesNothing: true, open: byVersion(fail, func(r *optimistic.Repository[account], ctx context.Context, was account) error {
			return r.Remove(ctx, was)
		})},
		call{name: "optimistic.Apply", unbound: true, open: byVersion(fail, func(r *optimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Apply(ctx, fixture.Key, plusOne())
			return err
		})},
		call{name: "optimistic.Apply, guarded", open: byVersion(fail, func(r *optimistic.Repository[account], ctx context.Context, was account) error {
			_, err := r.Apply(ctx, fixture.Key, plusOne(), expression.Name("balance").Equal(expression.Value(was.Balance)))
			return err
		})},
		call{name: "optimistic.Once.Apply", open: byVersion(fail, func(r *optimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Once("id").Apply(ctx, fixture.Key, plusOne())
			return err
		})},
		call{name: "nolock.Update", open: byEvent(func(r *nolock.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Update(ctx, fixture.Key, add)
			return err
		})},
		call{name: "nolock.Upsert", open: byEvent(func(r *nolock.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Upsert(ctx, fixture.Key, add)
			return err
		})},
		call{name: "nolock.Create", makes: true, open: byEvent(func(r *nolock.Repository[account], ctx context.Context, was account) error {
			was.Version = 0
			_, err := r.Create(ctx, raised(was))
			return err
		})},
		call{name: "nolock.Delete", deletes: true, open: byEvent(func(r *nolock.Repository[account], ctx context.Context, _ account) error {
			return r.Delete(ctx, fixture.Key)
		})},
		call{name: "nolock.Put", open: byEvent(func(r *nolock.Repository[account], ctx context.Context, was account) error {
			return r.Put(ctx, later(was))
		})},
		call{name: "nolock.Apply", open: byEvent(func(r *nolock.Repository[account], ctx context.Context, _ account) error {
			return r.Apply(ctx, fixture.Key, 1000, plusOne())
		})},
		call{name: "nolock.DeleteAt", deletes: true, open: byEvent(func(r *nolock.Repository[account], ctx context.Context, _ account) error {
			return r.DeleteAt(ctx, fixture.Key, 1000)
		})},
		call{name: "pessimistic.Update", locks: true, open: byLock(pessimistic.Config{}, func(r *pessimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Update(ctx, fixture.Key, add)
			return err
		})},
		call{name: "pessimistic.Update, fair", locks: true, open: byLock(pessimistic.Config{Fair: true}, func(r *pessimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Update(ctx, fixture.Key, add)
			return err
		})},
		call{name: "pessimistic.Upsert", locks: true, open: byLock(pessimistic.Config{Combine: true}, func(r *pessimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Upsert(ctx, fixture.Key, add)
			return err
		})},
		call{name: "pessimistic.Once.Update", locks: true, open: byLock(pessimistic.Config{}, func(r *pessimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Once("id").Update(ctx, fixture.Key, add)
			return err
		})},
		call{name: "pessimistic.Delete", locks: true, deletes: true, open: byLock(pessimistic.Config{}, func(r *pessimistic.Repository[account], ctx context.Context, _ account) error {
			return r.Delete(ctx, fixture.Key)
		})},
		call{name: "pessimistic.Apply", unbound: true, open: byLock(pessimistic.Config{}, func(r *pessimistic.Repository[account], ctx context.Context, _ account) error {
			_, err := r.Apply(ctx, fixture.Key, plusOne())
			return err
		})},
	)
}

// world is one cell of the matrix: an item, a client whose requests are copied, and others.
type world struct {
	*fixture.Fixture
	copier *fault.Copier
	mine   table
	mail   *repo.KeyTable
	run    change
	was    account
	others *optimistic.Repository[account]
}

func newWorld(t *testing.T, c call) *world {
	w := &world{Fixture: fixture.New(t)}
	client, copier := rig.Copied()
	w.copier = copier
	w.others = rig.Must(optimistic.New(w.Items(t, rig.Client()), optimistic.Config{}))(t)
	w.mine = w.Items(t, client)
	w.mail = rig.Must(delegate.NewMailTable(client, rig.New(t).Table, repo.TableConfig{}))(t)
	if c.command != nil {
		w.run = c.command(t, w)
	} else {
		w.run = c.open(t, w.mine)
	}
	w.was = account{ID: "p", Seq: 1, At: 1}
	if !c.makes {
		w.was = rig.Must(w.others.Create(t.Context(), w.was))(t)
	}
	return w
}

// write lets others change the item n times, without touching the balance.
func (w *world) write(t *testing.T, n int) {
	for i := range n {
		_, err := w.others.Update(t.Context(), fixture.Key, func(_ context.Context, a *account) error { a.Note = fmt.Sprint(i); return nil })
		if err != nil && !errors.Is(err, repo.ErrNotFound) && !errors.Is(err, repo.ErrLocked) {
			t.Error(err)
		}
	}
}

// lock lets somebody hold the item: by hand, who leaves no trace, or with a token.
func (w *world) lock(t *testing.T, byHand bool) (release func()) {
	key := rig.Must(w.Items(t, w.Client).EncodeKey(fixture.Key))(t)
	send := func(update string, values map[string]types.AttributeValue) {
		_, err := rig.Client().UpdateItem(context.Background(), &dynamodb.UpdateItemInput{TableName: &w.Table, Key: key, UpdateExpression: &update, ExpressionAttributeValues: values})
		rig.Is(t, err)
	}
	if byHand {
		send("SET lockedBy = :by, lockTime = :at", map[string]types.AttributeValue{
			":by": &types.AttributeValueMemberS{Value: "joe"}, ":at": &types.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Add(time.Hour).Unix())}})
		return func() { send("REMOVE lockedBy, lockTime", nil) }
	}
	held := rig.Must(rig.Must(pessimistic.New(w.Items(t, rig.Client()), pessimistic.Config{}))(t).Acquire(t.Context(), fixture.Key))(t)
	return func() { rig.Is(t, held.Release(context.Background())) }
}

// brokenHold lets somebody take the lock, and a third end it.
func (w *world) brokenHold(t *testing.T) {
	others := rig.Must(pessimistic.New(w.Items(t, rig.Client()), pessimistic.Config{}))(t)
	rig.Must(others.Acquire(t.Context(), fixture.Key))(t)
	w.breakHold(t)
}

// applied is how often the call was applied, as the item shows.
func (w *world) applied(t *testing.T, c call) int64 {
	out := rig.Must(rig.Client().GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &w.Table, Key: rig.Must(w.Items(t, w.Client).EncodeKey(fixture.Key))(t), ConsistentRead: aws.Bool(true)}))(t)
	is, err := w.Items(t, rig.Client()).Get(context.Background(), fixture.Key)
	switch gone := errors.Is(err, repo.ErrNotFound); {
	case c.deletes && gone:
		return 1
	case gone, c.deletes:
		return 0
	}
	if err != nil {
		t.Fatal(err, out.Item)
	}
	return is.Balance
}

// check compares what a call was told with what has become of it.
func (w *world) check(t *testing.T, c call, err error) string {
	n := w.applied(t, c)
	switch unknown := errors.Is(err, repo.ErrOutcomeUnknown); {
	case n > 1:
		t.Errorf("applied %d times, told %v", n, err)
	case err == nil && n != 1:
		t.Errorf("told that it is written, but it is not")
	case c.leavesNothing && n == 1 && errors.Is(err, repo.ErrNotFound):
		return "gone"
	case err != nil && !unknown && n != 0:
		t.Errorf("applied, told %v", err)
	case unknown:
		return "unknown"
	case err != nil:
		return "not written"
	}
	return "written"
}

// Every call at every moment of a copy: nothing is applied twice, nothing that is applied
// is told as not written, and what is told as not written never comes.
func TestCopies(t *testing.T) {
	told, cells := map[string]int{}, 0
	list := calls()
	slices.SortFunc(list, func(a, b call) int { return len(a.name) - len(b.name) })
	for _, c := range list {
		for _, m := range moments() {
			if m.skip != nil && m.skip(c) {
				continue
			}
			t.Run(c.name+"/"+m.name, func(t *testing.T) {
				w := newWorld(t, c)
				verdict := w.check(t, c, m.do(t, w, c))
				t.Log(verdict)
				told[verdict]++
				cells++
			})
		}
	}
	t.Logf("%d cells: %v", cells, told)
}
