package mutex_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// quick is a waiter that tries again at once.
var quick = repo.Wait{Min: time.Millisecond, Max: 2 * time.Millisecond}

// A waiter gave up after as many lost answers as the client's policy allows for
// one request, however many were answered between.
func TestOnlyAnswersLostInARowEndTheWaiting(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		t.Parallel()
		rival := rig.Must(mutex.New(rig.Client(), b.Table, cfg))(t)
		held := lock(t, rival, "door")
		cfg.Wait = quick
		l := b.locker(t, cfg)
		var n atomic.Int32
		b.Faults(func(string, int, []byte) fault.Kind {
			switch n := n.Add(1); {
			case n == 60: // thirty lost by now, of which ten in a row would be too many
				rig.Is(t, held.Unlock(t.Context()))
			case n < 60 && n%2 == 1:
				return fault.DropRequest
			}
			return fault.None
		})
		rig.Is(t, rig.Must(l.Lock(t.Context(), "door"))(t).Unlock(t.Context()))
	})
}

func TestAnswersLostInARowEndTheWaiting(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.locker(t, mutex.Config{Wait: quick})
	b.Always(fault.DropRequest)
	if _, err := l.Lock(t.Context(), "door"); err == nil {
		t.Error("locked without an answer")
	}
	if n := b.Count.Total(); n > 30 { // ten tries, and what may be left of them is given back
		t.Errorf("%d requests", n)
	}
}

// What the tries without an answer may have taken is given back by two
// requests, however many they were: a lock has one holder.
func TestAWaiterThatGoesGivesBackWhatItsTriesTook(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		t.Parallel()
		rival := rig.Must(mutex.New(rig.Client(), b.Table, cfg))(t)
		held := lock(t, rival, "door")
		cfg.Wait = quick
		l := b.locker(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var n, after atomic.Int32
		b.Faults(func(string, int, []byte) fault.Kind {
			if ctx.Err() != nil {
				after.Add(1)
				return fault.None
			}
			switch n := n.Add(1); {
			case n == 41:
				rig.Is(t, held.Unlock(t.Context()))
				return fault.LoseResponse // this one takes it
			case n == 42: // and this one is the newest that had no answer
				cancel()
				return fault.DropRequest
			case n%2 == 1:
				return fault.DropRequest
			}
			return fault.None
		})
		_, err := l.Lock(ctx, "door")
		rig.Is(t, err, context.Canceled)
		if n := after.Load(); n > 2 {
			t.Errorf("%d requests to give back what one try took", n)
		}
		lock(t, rival, "door")
	})
}

// A try that landed long ago is found again when its lease is over: its lock is
// of no use to anybody.
func TestALockThatIsFoundAgainTooLateIsTakenAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Lease: 3 * time.Second, Race: true, Wait: quick}) // in a queue it is confirmed
	var first int64
	var n atomic.Int32
	b.Faults(func(string, int, []byte) fault.Kind {
		switch n.Add(1) {
		case 1:
			return fault.LoseResponse
		case 2, 3, 4: // each for a third of the lease
			return fault.HoldRequest
		case 5:
			first = tokenOf(t, b.row(t, "door"))
		}
		return fault.None
	})
	if held := rig.Must(l.Lock(t.Context(), "door"))(t); held.Token() != first+1 {
		t.Errorf("token %d, the first was %d", held.Token(), first)
	}
}

// One attempt takes over a hold that is past its end: nobody holds the name.
func TestOneAttemptTakesOver(t *testing.T) {
	b := newBench(t)
	lock(t, b.locker(t, mutex.Config{Mode: mutex.FailOpen, Lease: time.Second}), "door")
	l := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Race: true, Wait: repo.Wait{Attempts: 1}})
	_, err := l.Lock(t.Context(), "door")
	rig.Is(t, err, repo.ErrLocked)
	l.SetClock(time.Hour)
	b.Count.Reset()
	rig.Must(l.Lock(t.Context(), "door"))(t)
	rig.Equal(t, b.Count.Total(), 1, "requests")
}
