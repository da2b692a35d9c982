package single_test

import (
	"context"
	"testing"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// commands are those of package delegate: of who is alone; of who leads, for another writes behind
// its first reading; and of who sends it to another that leads. More moments of theirs:
// internal/suite/delegated.
func commands() (all []call) {
	open := func(t *testing.T, w *world, on table, mail *repo.KeyTable, disturbed bool) *delegate.Call[int64, int64] {
		c := rig.Must(delegate.New(rig.Must(optimistic.New(on, optimistic.Config{}))(t), delegate.Config{Mail: mail, Wait: repo.Wait{Attempts: 1}}))(t)
		t.Cleanup(func() { rig.Is(t, c.Close(context.Background())) })
		return rig.Must(delegate.Command(c, "add", func(_ context.Context, a *account, n int64) (int64, error) {
			if disturbed {
				disturbed = false
				w.write(t, 1)
			}
			a.Balance += n
			return a.Balance, nil
		}))(t)
	}
	add := func(name, once string, leads, sends bool) {
		all = append(all, call{name: "delegate." + name, refused: leads, command: func(t *testing.T, w *world) change {
			rig.Is(t, w.mail.EnsureTable(t.Context()))
			do := open(t, w, w.mine, w.mail, leads)
			if once != "" {
				do = do.Once(once)
			}
			client := rig.Client()
			peer := open(t, w, w.Items(t, client), rig.Must(delegate.NewMailTable(client, w.mail.Name(), repo.TableConfig{}))(t), true)
			return func(ctx context.Context, _ account) error {
				if sends {
					_, _ = peer.Do(ctx, fixture.Key, 0) // where the item is away nobody leads
				}
				_, err := do.Do(ctx, fixture.Key, 1)
				return err
			}
		}})
	}
	add("Do", "", false, false)
	add("Once.Do", "id", false, false)
	add("Do, leading", "", true, false)
	add("Do, sent", "", false, true)
	return all
}
