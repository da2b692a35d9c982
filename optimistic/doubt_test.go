package optimistic_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

type updateSend = func() (*dynamodb.UpdateItemOutput, error)

// pair is a repository whose requests a test can act at, and others beside it.
type pair struct {
	*rig.Intercept
	mine   *optimistic.Repository[customer]
	others *optimistic.Repository[customer]
	locks  *pessimistic.Repository[customer]
	table  string
	first  customer // as it was created
}

func newPair(t *testing.T, cfg optimistic.Config) *pair {
	t.Helper()
	b := rig.New(t)
	p := &pair{Intercept: &rig.Intercept{Client: b.Client}, table: b.Table}
	plain := rig.Must(repo.NewTable[customer](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, plain.EnsureTable(t.Context()))
	p.others = rig.Must(optimistic.New(plain, optimistic.Config{}))(t)
	p.locks = rig.Must(pessimistic.New(plain, pessimistic.Config{}))(t)
	p.mine = rig.Must(optimistic.New(rig.Must(repo.NewTable[customer](p.Intercept, b.Table, repo.TableConfig{}))(t), cfg))(t)
	p.first = rig.Must(p.others.Create(t.Context(), customer{ID: "c1"}))(t)
	return p
}

// write writes the item, as others do.
func (p *pair) write(t *testing.T) {
	t.Helper()
	rig.Must(p.others.Update(t.Context(), key, addOrder))(t)
}

// lockByHand takes the lock as a program does that follows the article.
func (p *pair) lockByHand(t *testing.T, until int64) {
	t.Helper()
	p.set(t, "SET lockedBy = :by, lockTime = :t", map[string]types.AttributeValue{
		":by": &types.AttributeValueMemberS{Value: "hand"}, ":t": &types.AttributeValueMemberN{Value: strconv.FormatInt(until, 10)}})
}

func (p *pair) set(t *testing.T, update string, values map[string]types.AttributeValue) {
	t.Helper()
	if _, err := p.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &p.table, UpdateExpression: aws.String(update),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "c1"}}, ExpressionAttributeValues: values}); err != nil {
		t.Error(err)
	}
}

func addOrder(_ context.Context, c *customer) error { c.Orders++; return nil }

// unknownAlone fails the test unless an error says "unknown", and not also that
// nothing was written.
func unknownAlone(t *testing.T, err error) {
	t.Helper()
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	for _, claim := range []error{repo.ErrLocked, repo.ErrConflict, repo.ErrNotFound, repo.ErrExists} {
		if errors.Is(err, claim) {
			t.Errorf("it says also that nothing was written: %v", err)
		}
	}
}

// A save whose first attempt is on its way, and whose repetition met a lock,
// ended as "not written" with its context, or with what befell its next try.
func TestASaveThatMayStillLandIsNotRefused(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(leave func()) error{
		"the context ends":       func(leave func()) error { leave(); return context.Canceled },
		"a later try is refused": func(func()) error { return &types.ResourceNotFoundException{} },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, optimistic.Config{})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var delayed *dynamodb.UpdateItemInput
			var release func(context.Context) error
			p.Update = func(n int, in *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
				switch n {
				case 1:
					delayed, release = in, rig.Must(p.locks.Acquire(t.Context(), key))(t).Release
					return nil, rig.ErrNoAnswer
				case 2:
					return send()
				}
				return nil, end(leave)
			}
			_, err := p.mine.Save(ctx, customer{ID: "c1", Orders: 5, Version: p.first.Version})
			unknownAlone(t, err)
			rig.Is(t, release(t.Context()))
			if _, err := p.Client.UpdateItem(t.Context(), delayed); err != nil {
				t.Errorf("the attempt does not fit any more, %v: the test shows nothing", err)
			}
		})
	}
}

// A save in doubt is not called unknown where the ring from before it is still
// in sight.
func TestASaveInDoubtThatTheItemDecides(t *testing.T) {
	t.Parallel()
	p := newPair(t, optimistic.Config{})
	held := rig.Must(p.locks.Acquire(t.Context(), key))(t)
	p.Update = func(n int, _ *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
		switch n {
		case 1: // refused by the lock: what the item is, is known
			defer func() { rig.Is(t, held.Release(t.Context())) }()
		case 2:
			p.write(t)
			return nil, rig.ErrNoAnswer
		}
		return send()
	}
	_, err := p.mine.Save(t.Context(), customer{ID: "c1", Orders: 5, Version: p.first.Version})
	rig.Is(t, err, repo.ErrConflict)
}

// A save that comes too late, and whose first attempt has no answer, was not applied:
// the ring that the process left before it is still in sight. One of a version to come
// may be applied when that is stored.
func TestASaveBehindThatOfItsProcess(t *testing.T) {
	t.Parallel()
	for given, unknown := range map[uint32]bool{1: false, 3: true} {
		p := newPair(t, optimistic.Config{})
		p.first.Orders = 4
		rig.Must(p.mine.Save(t.Context(), p.first))(t)
		p.Update = func(n int, _ *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
			if n == 1 {
				return nil, rig.ErrNoAnswer
			}
			return send()
		}
		_, err := p.mine.Save(t.Context(), customer{ID: "c1", Orders: 5, Version: given})
		if errors.Is(err, repo.ErrOutcomeUnknown) != unknown || errors.Is(err, repo.ErrConflict) == unknown {
			t.Errorf("version %d, 2 is stored: %v", given, err)
		}
	}
}

// A save of an item that the process has read is bound to the ring that was there then,
// and extends it: so other processes do not hide what became of it, nor it what became
// of their writes.
func TestASaveOfWhatWasRead(t *testing.T) {
	t.Parallel()
	p := newPair(t, optimistic.Config{})
	mine := rig.Must(p.mine.Save(t.Context(), p.first))(t)
	theirs := func() {
		item := rig.Must(p.others.Get(t.Context(), key))(t)
		item.Orders++
		rig.Must(p.others.Save(t.Context(), item))(t)
	}
	theirs() // from the first save on a process remembers what it sees
	first := false
	var meet func(send updateSend)
	p.Update = func(_ int, _ *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
		if !first {
			return send()
		}
		first = false
		meet(send)
		return nil, rig.ErrNoAnswer
	}
	save := func(what func(send updateSend)) error {
		first, meet = true, what
		_, err := p.mine.Save(t.Context(), mine)
		mine = rig.Must(p.mine.Get(t.Context(), key))(t)
		return err
	}
	mine = rig.Must(p.mine.Get(t.Context(), key))(t)
	for range 3 {
		if err := save(func(send updateSend) { rig.Must(send())(t); theirs(); theirs() }); err != nil {
			t.Errorf("applied, and others have written since: %v", err)
		}
		err := save(func(updateSend) { theirs(); theirs() })
		if rig.Is(t, err, repo.ErrConflict); errors.Is(err, repo.ErrOutcomeUnknown) {
			t.Errorf("not applied: %v", err)
		}
	}
}

// The version is all that is compared: an item made anew is replaced by who has read
// the one before at the same version, in one request more.
func TestASaveOfAnotherLife(t *testing.T) {
	t.Parallel()
	p := newPair(t, optimistic.Config{})
	mine := rig.Must(p.mine.Save(t.Context(), p.first))(t)
	rig.Is(t, p.others.Delete(t.Context(), key))
	rig.Must(p.others.Create(t.Context(), customer{ID: "c1"}))(t)
	p.write(t)
	sent := 0
	p.Update = func(n int, _ *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
		sent = n
		return send()
	}
	mine.Orders = 7
	rig.Must(p.mine.Save(t.Context(), mine))(t)
	if got := rig.Must(p.mine.Get(t.Context(), key))(t); got.Orders != 7 || got.Version != 3 || sent != 2 {
		t.Errorf("%+v with %d requests", got, sent)
	}
}

// An update whose first attempt is on its way, behind a lock taken by hand, says
// what stands in the way, and nothing about others' changes.
func TestAnUpdateBehindALockTakenByHand(t *testing.T) {
	t.Parallel()
	p := newPair(t, optimistic.Config{FailLocked: true})
	p.Update = func(n int, _ *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
		if n > 1 {
			return send()
		}
		p.lockByHand(t, time.Now().Add(time.Hour).Unix())
		return nil, rig.ErrNoAnswer
	}
	_, err := p.mine.Update(t.Context(), key, addOrder)
	unknownAlone(t, err)
	if text := err.Error(); !strings.Contains(text, `locked by "hand"`) || strings.Contains(text, "changed") {
		t.Errorf("it says: %v", err)
	}
}

// A call whose context ends says what it was waiting for: after conflicts it was
// called locked, by nobody, with no end.
func TestWhatACallWasWaitingForWhenItsContextEnded(t *testing.T) {
	for name, c := range map[string]struct{ write, read int }{
		"at once after a conflict": {write: 1},
		"before it sleeps":         {write: 3},
		"when it reads again":      {read: 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, optimistic.Config{Wait: repo.Wait{Min: time.Millisecond, Max: time.Millisecond}})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			p.Update = func(n int, _ *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
				p.write(t) // others are first, each time
				out, err := send()
				if n == c.write {
					leave()
				}
				return out, err
			}
			p.Get = func(n int) {
				if n == c.read {
					leave()
				}
			}
			_, err := p.mine.Update(ctx, key, addOrder)
			rig.Is(t, err, context.Canceled, repo.ErrConflict)
			if errors.Is(err, repo.ErrLocked) {
				t.Errorf("nobody has locked it: %v", err)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		p := newPair(t, optimistic.Config{})
		ctx, leave := context.WithCancel(t.Context())
		leave()
		_, err := p.mine.Update(ctx, key, addOrder)
		rig.Is(t, err, context.Canceled)
		if errors.Is(err, repo.ErrLocked) || errors.Is(err, repo.ErrConflict) {
			t.Errorf("it waited for nobody: %v", err)
		}
	})
	for name, cfg := range map[string]optimistic.Config{"a caller of this process": {}, "a batch of this process": {Combine: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, cfg)
			ctx, leave := context.WithCancel(t.Context())
			var second error
			_, err := p.mine.Update(t.Context(), key, func(context.Context, *customer) error {
				told := make(chan struct{})
				go func() {
					defer close(told)
					_, second = p.mine.Update(ctx, key, addOrder)
				}()
				rig.Await(t, "the second caller stands in line", func() bool { return optimistic.Waiting(p.mine, key) == 1 })
				leave()
				<-told
				return nil
			})
			rig.Is(t, err)
			rig.Is(t, second, context.Canceled)
			if !strings.Contains(second.Error(), "a caller of this process is before this one") {
				t.Errorf("it does not say for whom it waited: %v", second)
			}
		})
	}
}

// A lock that is over holds nobody up: to break it is no try in vain.
func TestOneAttemptBreaksALockThatIsOver(t *testing.T) {
	for name, write := range map[string]func(context.Context, *optimistic.Repository[customer]) error{
		"Update": func(ctx context.Context, r *optimistic.Repository[customer]) error {
			_, err := r.Update(ctx, key, addOrder)
			return err
		},
		"Save": func(ctx context.Context, r *optimistic.Repository[customer]) error {
			_, err := r.Save(ctx, customer{ID: "c1", Version: 1})
			return err
		},
		"Remove": func(ctx context.Context, r *optimistic.Repository[customer]) error {
			return r.Remove(ctx, customer{ID: "c1", Version: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, optimistic.Config{Wait: repo.Wait{Attempts: 1}})
			p.lockByHand(t, 1)
			rig.Is(t, write(t.Context(), p.mine))
		})
		t.Run(name+", ended by its holder meanwhile", func(t *testing.T) {
			p := newPair(t, optimistic.Config{Wait: repo.Wait{Attempts: 1}})
			p.lockByHand(t, 1)
			p.Update = func(_ int, in *dynamodb.UpdateItemInput, send updateSend) (*dynamodb.UpdateItemOutput, error) {
				if strings.Contains(aws.ToString(in.UpdateExpression), "REMOVE") && !strings.Contains(aws.ToString(in.UpdateExpression), "SET") {
					p.set(t, "REMOVE lockedBy, lockTime", nil)
				}
				return send()
			}
			rig.Is(t, write(t.Context(), p.mine))
		})
	}
}

// A call whose write had no answer, and whose context has ended since, says both.
func TestAnUnknownOutcomeSaysThatTheContextEnded(t *testing.T) {
	for name, call := range map[string]func(context.Context, *pair) error{
		"Delete": func(ctx context.Context, p *pair) error { return p.mine.Delete(ctx, key) },
		"Remove": func(ctx context.Context, p *pair) error { return p.mine.Remove(ctx, p.first) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, optimistic.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p.Delete = func(n int, _ *dynamodb.DeleteItemInput, send func() (*dynamodb.DeleteItemOutput, error)) (*dynamodb.DeleteItemOutput, error) {
				out, err := send()
				if n == 1 && err == nil {
					cancel()
					return nil, rig.ErrNoAnswer
				}
				return out, err
			}
			rig.Is(t, call(ctx, p), repo.ErrOutcomeUnknown, context.Canceled)
		})
	}
}
