// Package history records what concurrent clients did to one item, and checks
// with porcupine that it is linearizable: that there is one order of all
// operations, in which each takes effect at one moment between its call and its
// return, and which explains every result. It is for tests only.
//
//	rec := history.NewRecorder()
//	// in each client:
//	var saw, left history.State
//	done := rec.Begin(client, history.Update)
//	_, err := repository.Update(ctx, key, func(_ context.Context, item *Account) error {
//		saw = history.Present(item.Chain)
//		item.Chain = history.Append(item.Chain, id)
//		left = history.Present(item.Chain)
//		return nil
//	})
//	done(history.Result{Verdict: verdict(err), Old: saw, New: left})
//	// when all clients have ended:
//	rec.Verify(t, time.Minute)
//
// The item is modelled as one optional number. An update tells which number it
// saw and which it left, so that a lost, a doubled or a vanished write breaks
// the chain of numbers; [Append] makes numbers that stand for all that was ever
// appended, so that no two different pasts look alike.
//
// An operation that ended as [Unknown] may take effect at any moment after its
// call, also after the last return, or never. [Refused] says that it never does.
package history
