package lockedread_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// text is what a log has written so far.
type text struct {
	mu  sync.Mutex
	all bytes.Buffer // guarded by mu
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.String()
}

// The log tells that a lease is over while a change still runs that never looks at its
// context: nobody else could tell who keeps the item from its next holder.
func TestAChangeThatOverrunsItsLeaseIsReportedMeanwhile(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 1, func(t *testing.T, network fault.Doer) {
		var told text
		client := rig.Client(rig.Over(network))
		table := rig.Must(repo.NewTable[journal](client, b.Table, repo.TableConfig{Logger: slog.New(slog.NewTextHandler(&told, nil))}))(t)
		l := rig.Must(lockedread.New(table, lockedread.Config{Lease: 30 * time.Second}))(t)
		expired := func() int { return strings.Count(told.String(), "dynahold.lock.expired") }
		_, err := l.Upsert(t.Context(), journalKey, func(ctx context.Context, j *journal) error {
			time.Sleep(28 * time.Second)
			synctest.Wait()
			rig.Equal(t, expired(), 0, "events before the end")
			time.Sleep(time.Second) // the lease, less its margin
			synctest.Wait()
			if n := expired(); n != 1 {
				t.Errorf("%d events at the end, want one: %s", n, told.String())
			}
			time.Sleep(time.Minute)
			if cause := context.Cause(ctx); !errors.Is(cause, repo.ErrLockExpired) {
				t.Errorf("cause %v", cause)
			}
			j.IDs = append(j.IDs, "late")
			return nil
		})
		if !errors.Is(err, repo.ErrLockExpired) || expired() != 1 {
			t.Errorf("%d events, %v", expired(), err)
		}
	})
}
