package ddb

import (
	"context"
	"time"
)

// UntilDecided sends a write that can be applied only once, again and again while it
// has no verdict, as long as ctx allows and until it is too late. send also says
// whether a refusal is worth another try. clean says that no such write was sent
// before; the result's is about all of them.
func UntilDecided(ctx context.Context, pause Backoff, clean bool, late func() bool, send func() (res Result, again bool)) Result {
	for {
		res, again := send()
		clean = clean && res.Clean
		res.Clean = clean
		if (again || res.Outcome == Unknown) && ctx.Err() == nil && !late() {
			Sleep(ctx, pause.Next(time.Now(), time.Time{}))
			continue
		}
		if res.Outcome == Refused && !clean {
			res.Outcome = Unknown
		}
		return res
	}
}
