package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/repo"
)

// An extension that is answered after the deadline comes too late for whoever has been told
// that the lease is over: it says so, and nothing is renewed any more.
func TestAnExtensionThatIsAnsweredTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renewals := 0
		l := begin(lease.Config{Length: length, Every: every}, time.Now().Add(length), func(context.Context) error {
			if renewals++; renewals == 1 {
				time.Sleep(length)
			}
			return nil
		})
		l.Start(t.Context())
		over := l.Context()
		if err := l.Extend(t.Context()); !errors.Is(err, repo.ErrLockExpired) {
			t.Errorf("error %v", err)
		}
		if cause := context.Cause(over); !errors.Is(cause, repo.ErrLockExpired) {
			t.Errorf("cause %v", cause)
		}
		time.Sleep(10 * length)
		if n := lease.Renewed(); renewals != 1 || n != 0 {
			t.Errorf("%d renewals, %d leases are counted for more", renewals, n)
		}
	})
}
