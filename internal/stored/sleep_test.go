package stored_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// A sleep ends when its time has passed by the clock that may jump, or by the machine's;
// where the clock cannot jump, by the machine's alone.
func TestSleepByAClockThatJumps(t *testing.T) {
	const jump = time.Second // when it does
	const long = 5 * time.Minute
	for name, c := range map[string]struct {
		jumps bool
		ahead time.Duration // what the clock shows then, against the machine's
		want  time.Duration
	}{
		"on, past the end":       {true, long, jump + ddb.ClockLook},
		"on, but not so far":     {true, long / 2, long / 2},
		"back":                   {true, -long, long},
		"the machine's own goes": {false, long, long},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ahead atomic.Int64
				core := &stored.Table{Jumps: c.jumps, Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
				time.AfterFunc(jump, func() { ahead.Store(int64(c.ahead)) })
				began := time.Now()
				core.Sleep(t.Context(), long)
				if slept := time.Since(began); slept > c.want || slept < c.want-ddb.ClockLook {
					t.Errorf("it slept for %v, want %v", slept, c.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		news := make(chan struct{}, 1)
		time.AfterFunc(jump, func() { news <- struct{}{} })
		began := time.Now()
		(&stored.Table{}).SleepOr(t.Context(), long, news)
		if slept := time.Since(began); slept != jump {
			t.Errorf("it slept for %v, and the news came after %v", slept, jump)
		}
	})
}
