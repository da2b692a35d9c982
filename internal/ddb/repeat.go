package ddb

import (
	"context"
	"time"
)

// Repetition is how a write that can be applied only once is sent again and again
// while it has no verdict, as long as ctx allows and until it is too late.
type Repetition struct {
	Pause Backoff
	Clean bool        // no such write was sent before
	Late  func() bool // it is too late for another
}

// Again takes in the result of one more sending, and sleeps before the next one.
// False: there is none, and the result is now about all of them. passes says that
// a refusal is worth another try.
func (r *Repetition) Again(ctx context.Context, res *Result, passes bool) bool {
	r.Clean = r.Clean && res.Clean
	res.Clean = r.Clean
	refused := res.Outcome == Refused || res.Unread
	if (res.Outcome == Unknown && !res.Unread || passes && refused) && ctx.Err() == nil && !r.Late() {
		Sleep(ctx, r.Pause.Next(time.Now(), time.Time{}))
		return true
	}
	if res.Outcome == Refused && !res.Clean {
		res.Outcome = Unknown
	}
	return false
}
