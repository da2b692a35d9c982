package adoption

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/guregu/dynamo/v2"

	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// shown

// addScore is a change by guregu/dynamo beside programs with the library.
func addScore(ctx context.Context, players dynamo.Table, id string, n int) error {
	return players.Update("id", id).Add("score", n).
		Add("version", 1).                                                     // so that optimistic notices
		If("attribute_exists(id) AND attribute_not_exists(lockedBy)").Run(ctx) // so that a lock keeps it out
}

// end of what is shown

// both are programs with guregu/dynamo and with the library, on one table.
type both struct {
	theirs   dynamo.Table
	versions *optimistic.Repository[Player]
	locks    *pessimistic.Repository[Player]
}

func besides(t *testing.T) both {
	theirs := guregu(t, Player{})
	table := must(repo.NewTable[Player](client, theirs.Name(), gureguCoding))(t)
	return both{theirs, must(optimistic.New(table, optimistic.Config{Attempts: 10_000}))(t), must(pessimistic.New(table, pessimistic.Config{}))(t)} // they meet at once, with no pause
}

var joan = repo.Key{Partition: "joan"}

func score(_ context.Context, p *Player) error { p.Score++; return nil }

// read is what guregu/dynamo reads.
func (b both) read(t *testing.T) (p Player) {
	t.Helper()
	check(t, b.theirs.Get("id", "joan").Consistent(true).One(t.Context(), &p))
	return p
}

// Writers that count the version and respect a lock lose nothing beside both strategies.
func TestGureguBesideUsLosesNothing(t *testing.T) {
	b := besides(t)
	check(t, b.theirs.Put(Player{ID: "joan"}).Run(t.Context()))
	// The first of our writes leaves what tells from then on which of them were applied,
	// whatever theirs do to the version in between.
	must(b.versions.Update(t.Context(), joan, score))(t)
	const each = 15
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for done := 0; done < each; {
				err := addScore(t.Context(), b.theirs, "joan", 1)
				if err == nil {
					done++
				} else if !dynamo.IsCondCheckFailed(err) {
					t.Error(err)
					return
				}
			}
		})
		group.Go(func() {
			for range each {
				if _, err := b.versions.Update(t.Context(), joan, score); err != nil {
					t.Error(err)
				}
			}
		})
		group.Go(func() {
			for range each {
				if _, err := b.locks.Update(t.Context(), joan, score); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if p := b.read(t); p.Score != 6*each+1 || p.Version != 6*each+1 {
		t.Errorf("%+v, want a score and a version of %d", p, 6*each+1)
	}
}

// A whole item that is put at its version, as many do by hand, excludes our optimistic writes, and they it.
func TestAPutAtItsVersionBesideOptimistic(t *testing.T) {
	b := besides(t)
	check(t, b.theirs.Put(Player{ID: "joan", Version: 1}).Run(t.Context()))
	putNext := func(p Player) error {
		at := p.Version
		p.Version++
		p.Score += 10
		return b.theirs.Put(p).If("version = ?", at).Run(t.Context())
	}
	stale := b.read(t)
	runs := 0
	must(b.versions.Update(t.Context(), joan, func(ctx context.Context, p *Player) error {
		if runs++; runs == 1 {
			check(t, putNext(b.read(t)))
		}
		return score(ctx, p)
	}))(t)
	if p := b.read(t); runs != 2 || p.Score != 11 || p.Version != 3 {
		t.Errorf("after %d runs %+v", runs, p)
	}
	if err := putNext(stale); !dynamo.IsCondCheckFailed(err) {
		t.Errorf("a stale put: %v", err)
	}
}

// A write that leaves version and ring alone is not noticed: attributes that we change are ours, others theirs.
func TestAnUpdateWithoutTheVersionIsNotNoticed(t *testing.T) {
	b := besides(t)
	for name, update := range map[string]func(context.Context, repo.Key, func(context.Context, *Player) error) (Player, error){"optimistic": b.versions.Update, "pessimistic": b.locks.Update} {
		check(t, b.theirs.Put(Player{ID: "joan"}).Run(t.Context()))
		must(update(t.Context(), joan, func(ctx context.Context, p *Player) error {
			check(t, b.theirs.Update("id", "joan").Set("name", "Joan").Set("score", 50).Run(ctx))
			return score(ctx, p)
		}))(t)
		if p := b.read(t); p.Name != "Joan" || p.Score != 1 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// A put without a condition, or a deletion, during a locked change ends the lock, and the commit is refused: what was put stays.
func TestAPutDuringALockedChangeWins(t *testing.T) {
	b := besides(t)
	for name, meanwhile := range map[string]func(context.Context) error{
		"put":    b.theirs.Put(Player{ID: "joan", Score: 50}).Run,
		"delete": b.theirs.Delete("id", "joan").Run,
	} {
		check(t, b.theirs.Put(Player{ID: "joan"}).Run(t.Context()))
		_, err := b.locks.Update(t.Context(), joan, func(ctx context.Context, p *Player) error {
			check(t, meanwhile(context.WithoutCancel(ctx)))
			return score(ctx, p)
		})
		if !errors.Is(err, repo.ErrLockLost) && !errors.Is(err, repo.ErrOutcomeUnknown) {
			t.Errorf("%s: %v", name, err)
		}
		var p Player
		err = b.theirs.Get("id", "joan").One(t.Context(), &p)
		if name == "put" && p.Score != 50 || name == "delete" && !errors.Is(err, dynamo.ErrNotFound) {
			t.Errorf("%s: the item is %+v, %v", name, p, err)
		}
	}
}

// A put without a condition during an optimistic change is noticed where the library has written the item before (its ring
// of writers is gone), and is lost where it has not.
func TestAPutDuringAnOptimisticChange(t *testing.T) {
	b := besides(t)
	for _, known := range []bool{true, false} {
		check(t, b.theirs.Put(Player{ID: "joan"}).Run(t.Context()))
		if known {
			must(b.versions.Update(t.Context(), joan, func(_ context.Context, p *Player) error { p.Name = "Joan"; return nil }))(t)
		}
		read, runs := b.read(t), 0
		read.Score = 50
		must(b.versions.Update(t.Context(), joan, func(ctx context.Context, p *Player) error {
			if runs++; runs == 1 {
				check(t, b.theirs.Put(read).Run(ctx))
			}
			return score(ctx, p)
		}))(t)
		want := 1
		if known {
			want = 51
		}
		if p := b.read(t); p.Score != want {
			t.Errorf("known %v: %+v after %d runs", known, p, runs)
		}
	}
}
