package lockedread

import (
	"time"

	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Config are the settings of a locker. The zero value works and is the safest.
type Config struct {
	// Lease is how long a hold lasts if it is not extended. Default 30 s, at
	// least 1 s, at most 24 h.
	Lease time.Duration
	// Renew extends a hold by itself, from a third of the lease on, while it
	// is held: no goroutine and no request for shorter holds. Leave it off in
	// functions that freeze between calls.
	Renew bool
	// Owner names the holder to others. Default: host name and process id.
	Owner string
	// ClockSkew is how much clocks may differ: a hold is overtaken only when
	// it is past its end by more. Default 1 s; negative: none.
	ClockSkew time.Duration
	// Clockless takes over only after watching the unchanged hold for its full
	// lease on the own clock. Clocks may then differ by any amount.
	// TTL goes by clocks: it leaves what a dead holder has locked before it had data.
	Clockless bool
	// LateCommit accepts a commit after the lease ran out if nobody took over.
	// Off: such a commit fails with ErrLockExpired, as in the article.
	LateCommit bool
	// Race tries again after random sleeps, in place of waiting in the queue on the item.
	// The queue serves all processes in the order in which they came: no write is wasted
	// on a lock that another has, and the longest wait is hardly longer than the usual
	// one. It costs reads, and while processes wait in it, the lock goes from one to the
	// next and is never free: who races waits until it is empty; writers without the lock
	// take their place in it. A race costs no reads, and keeps some out for long.
	// Processes that share items should agree on it, on Clockless, and roughly on Lease.
	Race bool
	// Fair says that the queue is wanted, which is the default: with Race it is an
	// error (ErrConfig).
	Fair bool
	// Wait bounds the waiting for an item that others hold.
	Wait repo.Wait
	// Combine lets one write commit the changes of all callers of Update, or of
	// Upsert, in this process that wait for the item. Readers of a stream then
	// see fewer of the item's states: those between two changes of one write
	// were never stored. A change gets the item as the change before it left
	// it; it runs again, alone, if what it saw was not written after all. A
	// change that does not return blocks every caller in its group.
	Combine bool
}

// taking checks the settings and fills in defaults.
func (c Config) taking() (lock.Config, error) {
	h := lock.Config{
		Kind: telemetry.Pessimistic, Owner: c.Owner, Lease: c.Lease, Skew: c.ClockSkew, Wait: c.Wait,
		Clockless: c.Clockless, LateCommit: c.LateCommit, Fair: !c.Race,
	}
	err := settings.FillAll(settings.Queue(c.Race, c.Fair), settings.Lease(&h.Lease), settings.ClockSkew(&h.Skew), settings.Owner(&h.Owner), settings.Wait(&h.Wait, settings.LeastWait))
	if c.Renew {
		h.Every = h.Lease / 3
	}
	return h, err
}
