package answers_test

import (
	"context"
	"testing"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// commands are what one process has of the items. Where it is disturbed others write behind its
// first reading: it is not alone then, and leads.
func (p *place) commands(t *testing.T, c repo.Client, disturbed bool) (*delegate.Commands[account], *delegate.Call[int64, int64]) {
	others := rig.Must(optimistic.New(p.items(t, p.peer), optimistic.Config{}))(t)
	mail := rig.Must(delegate.NewMailTable(c, p.mail, repo.TableConfig{}))(t)
	_, _ = mail.Inspect(t.Context(), repo.Key{Partition: "none", Sort: "none"}) // it has seen what the endpoint answers
	all := rig.Must(delegate.New(rig.Must(optimistic.New(p.items(t, c), optimistic.Config{}))(t), delegate.Config{Mail: mail}))(t)
	return all, rig.Must(delegate.Command(all, "add", func(_ context.Context, a *account, n int64) (int64, error) {
		if disturbed {
			disturbed = false
			rig.Must(others.Update(context.Background(), keyOf(a.ID), func(_ context.Context, a *account) error { a.At++; return nil }))(t)
		}
		a.At++
		a.Balance += n
		return a.Balance, nil
	}))(t)
}

// delegateCalls are a command of who is alone, of who leads, and of who sends it to another.
func delegateCalls() (all []call) {
	add := func(name, once string, leads, sends bool) {
		all = append(all, call{name: "delegate." + name, open: func(t *testing.T, p *place, c client, id string) action {
			there(t, rig.Must(optimistic.New(p.items(t, c), optimistic.Config{}))(t), id)
			peers, lead := p.commands(t, p.peer, true)
			if sends {
				rig.Must(lead.Do(t.Context(), keyOf(id), 0))(t)
			}
			own, do := p.commands(t, c, leads)
			if once != "" {
				do = do.Once(once)
			}
			end := func(ctx context.Context) { rig.Is(t, peers.Close(ctx)); rig.Is(t, own.Close(ctx)) }
			counted := balance(t, p, id)
			return action{
				run:     func(ctx context.Context) error { return justErr(do.Do(ctx, keyOf(id), 1)) },
				applied: func(ctx context.Context) int { end(ctx); return counted(ctx) }, // with what a leader does yet
				close:   end,
			}
		}})
	}
	add("Do", "", false, false)
	add("Once.Do", "m", false, false)
	add("Do, leading", "", true, false)
	add("Do, sent to who leads", "", false, true)
	add("Once.Do, sent to who leads", "m", false, true)
	return all
}
