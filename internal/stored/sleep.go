package stored

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Sleep waits for d or until ctx is done, whichever is first. Where the clock may jump
// it is over, too, when d has passed by the clock.
func (t *Table) Sleep(ctx context.Context, d time.Duration) { t.SleepOr(ctx, d, nil) }

// SleepOr is Sleep, which ends with news, too.
func (t *Table) SleepOr(ctx context.Context, d time.Duration, news <-chan struct{}) {
	end, step := time.Now().Add(d), d
	var until time.Time
	if t.Jumps {
		until, step = t.Clock().Add(d), ddb.ClockLook
	}
	for left := d; left > 0; {
		timer := time.NewTimer(min(left, step))
		select {
		case <-timer.C:
		case <-news:
			left = 0
		case <-ctx.Done():
			left = 0
		}
		timer.Stop()
		if left = min(left, time.Until(end)); t.Jumps {
			left = min(left, until.Sub(t.Clock()))
		}
	}
}
