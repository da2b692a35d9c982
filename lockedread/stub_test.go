package lockedread_test

import (
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
)

// TTL does not remove a stub under a hold: one that lasts for days, or that has taken over
// what somebody left who died days ago.
func TestTTLLeavesAStubThatIsHeld(t *testing.T) {
	for name, race := range map[string]bool{"queue": false, "race": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var clock repotest.Clock
			locker := func(lease time.Duration) *lockedread.Locker[stock] {
				table := rig.Must(repo.NewTable[stock](b.Client, b.Table, repo.TableConfig{Clock: clock.Now}))(t)
				return rig.Must(lockedread.New(table, lockedread.Config{Lease: lease, Race: race}))(t)
			}
			pear := repo.Key{Partition: "pear"}
			outlives := func() bool {
				row := b.Item(t, ddb.Item{"id": ddb.Text("pear")})
				ttl, err := ddb.Time(row["expiresAt"])
				rig.Is(t, err)
				until := rig.Must(ddb.Time(row["lockTime"]))(t)
				return ttl.After(until)
			}
			long := rig.Must(locker(24*time.Hour).AcquireOrCreate(t.Context(), pear))(t)
			for range 3 {
				clock.Advance(20 * time.Hour)
				rig.Is(t, long.Extend(t.Context()))
				rig.Equal(t, outlives(), true, "the stub outlives its hold")
			}
			clock.Advance(72 * time.Hour) // its holder has died
			next := rig.Must(locker(0).AcquireOrCreate(t.Context(), pear))(t)
			rig.Await(t, "the stub outlives its hold", outlives)
			rig.Is(t, next.Release(t.Context()))
		})
	}
}

// A clock that is a day behind would make the stub due while it is held.
func TestWithoutClocksAStubIsNeverDue(t *testing.T) {
	b := newBench(t)
	locker := func(cfg lockedread.Config) *lockedread.Locker[stock] {
		return rig.Must(lockedread.New(rig.Must(repo.NewTable[stock](b.Client, b.Table, repo.TableConfig{}))(t), cfg))(t)
	}
	pear := repo.Key{Partition: "pear"}
	stays := func() bool {
		ttl := rig.Must(ddb.Time(b.Item(t, ddb.Item{"id": ddb.Text("pear")})["expiresAt"]))(t)
		return ttl.After(time.Now().AddDate(100, 0, 0))
	}
	slow := locker(lockedread.Config{Clockless: true})
	slow.SetClock(-26 * time.Hour)
	h := rig.Must(slow.AcquireOrCreate(t.Context(), pear))(t)
	rig.Equal(t, stays(), true, "the stub stays")
	rig.Is(t, h.Release(t.Context()))

	dead := locker(lockedread.Config{Lease: time.Second})
	rig.Must(dead.AcquireOrCreate(t.Context(), pear))(t)
	h = rig.Must(slow.AcquireOrCreate(t.Context(), pear))(t) // with the time of its own that it had
	rig.Await(t, "the stub stays", stays)
	rig.Is(t, h.Release(t.Context()))
}
