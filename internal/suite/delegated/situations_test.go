package delegated_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// heavy are the accidents of a run in which others change the item, too.
var heavy = []accident{nothing, lost, heldAShort, copiedLate, killedAfter, stoppedAfter}

// again lets others do something to the item, every few milliseconds, for a while.
// What they are refused for because commands came first is no error of theirs.
func again(every time.Duration, do func(ctx context.Context, w *world, p *program) error) func(ctx context.Context, w *world, p *program) {
	return func(ctx context.Context, w *world, p *program) {
		for n := 0; n < 30 && ctx.Err() == nil; n++ {
			if err := do(ctx, w, p); err != nil && ctx.Err() == nil && !errors.Is(err, repo.ErrConflict) {
				w.t.Errorf("others: %v", err)
			}
			select {
			case <-time.After(every):
			case <-ctx.Done():
			}
		}
	}
}

func count(_ context.Context, l *list) error { l.Others++; return nil }

// TestOthersChangeTheItem is the matrix of what others do to the item meanwhile: every caller
// is told its command's own verdict.
func TestOthersChangeTheItem(t *testing.T) {
	for name, others := range map[string]func(ctx context.Context, w *world, p *program) error{
		"Update": func(ctx context.Context, w *world, p *program) error {
			_, err := p.items.Update(ctx, w.key, count)
			return err
		},
		"Save": func(ctx context.Context, w *world, p *program) error {
			item, err := p.items.Get(ctx, w.key)
			if err == nil {
				item.Others++
				_, err = p.items.Save(ctx, item)
			}
			return err
		},
		"Apply": func(ctx context.Context, w *world, p *program) error {
			_, err := p.items.Apply(ctx, w.key, expression.Add(expression.Name("others"), expression.Value(1)))
			return err
		},
		"Once": func(ctx context.Context, w *world, p *program) error {
			_, err := p.items.Once(time.Now().String()).Update(ctx, w.key, count)
			return err
		},
		"a lock": func(ctx context.Context, w *world, p *program) error {
			_, err := p.locks.Update(ctx, w.key, func(ctx context.Context, l *list) error {
				time.Sleep(30 * time.Millisecond)
				return count(ctx, l)
			})
			return err
		},
		"a lock that is left behind": func(_ context.Context, w *world, p *program) error {
			_, err := p.holds.Acquire(context.Background(), w.key)
			return err
		},
		"a transaction": func(ctx context.Context, w *world, p *program) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				_, err := p.items.In(tx).Update(ctx, w.key, count)
				return err
			})
		},
		"event time": func(ctx context.Context, w *world, p *program) error {
			_, err := p.events.Update(ctx, w.key, func(_ context.Context, l *list) error {
				l.Event++
				l.Others++
				return nil
			})
			return err
		},
	} {
		every := 7 * time.Millisecond
		if name == "a lock that is left behind" {
			every = time.Hour
		}
		t.Run(name, func(t *testing.T) {
			table(t, situation{others: again(every, others), steps: []step{postMail, roundItem, leaveItem}, what: heavy})
		})
	}
}

// gone reports whether an error says that the item is not there, or that what it said of a
// command has gone with it.
func gone(what told) bool {
	return errors.Is(what.err, repo.ErrNotFound) || errors.Is(what.err, repo.ErrOutcomeUnknown)
}

// TestTheItemGoes is the matrix of items that are removed, and made anew: what the item was
// when it went tells what is true.
func TestTheItemGoes(t *testing.T) {
	for name, others := range map[string]func(ctx context.Context, w *world, p *program) error{
		"removed, and made anew": func(ctx context.Context, w *world, p *program) error {
			item, err := p.items.Get(ctx, w.key)
			if err == nil {
				err = p.items.Remove(ctx, item)
			}
			if err != nil {
				return err
			}
			w.remember(item.Ops)
			time.Sleep(5 * time.Millisecond)
			_, err = p.items.Create(ctx, list{Shop: item.Shop, ID: item.ID, Event: 1})
			return err
		},
		"deleted by an event, and brought back": func(ctx context.Context, w *world, p *program) error {
			var was list
			_, err := p.events.Update(ctx, w.key, func(_ context.Context, l *list) error {
				was = *l
				return repo.Remove
			})
			if err != nil {
				return err
			}
			w.remember(was.Ops)
			time.Sleep(5 * time.Millisecond)
			return p.events.Put(ctx, list{Shop: was.Shop, ID: was.ID, Event: was.Event + 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			table(t, situation{others: again(25*time.Millisecond, others), steps: []step{postMail, roundItem, leaveItem}, what: heavy, may: gone})
		})
	}
}

// remember notes what an item had that is gone.
func (w *world) remember(ops []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = append(w.gone, ops...)
}

// TestProgramsDiffer is the matrix of deployments and clocks: programs that do not know a
// command leave it to its caller, and no clock decides.
func TestProgramsDiffer(t *testing.T) {
	clock := func(off time.Duration) func() time.Time {
		return func() time.Time { return time.Now().Add(off) }
	}
	for name, each := range map[string]func(n int) setup{
		"one has another version": func(n int) (s setup) {
			if n == 0 {
				s.command = "add/v2"
			}
			return s
		},
		"each has its own": func(n int) setup { return setup{command: "add/v" + string(rune('0'+n))} },
		"clocks apart":     func(n int) setup { return setup{clock: clock(time.Duration(n-1) * 10 * time.Minute)} },
		"one clock behind": func(n int) setup { return setup{clock: clock(-time.Hour * time.Duration(n/3))} },
	} {
		t.Run(name, func(t *testing.T) {
			table(t, situation{each: each, steps: []step{postMail, roundItem, takeBack, leaveItem}, what: heavy})
		})
	}
}
