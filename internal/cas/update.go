package cas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/internal/unlocked"
	"github.com/dynahold/dynahold/repo"
)

// atOnce is how many conflicts in a row are answered at once with the item that the failed
// write returned. From then on the writer sleeps and reads again, before each try: an item
// kept over a sleep is stale. Whose sleeps are no longer than eager wants many changes more
// than few writes: it answers more of them at once, behind each sleep.
const (
	atOnce      = 2
	eager       = 50 * time.Millisecond
	eagerAtOnce = 4
)

// A call that has used up three quarters of its attempts, if those are so many, takes the
// item's lock: whose change takes longer than the others', or who comes to each state of the
// item later than a process that passes it on in memory, would else lose every try. It comes
// late, for the lock costs two writes more, and all the others wait for it: after half of
// them, 32 writers made a tenth fewer changes. Who does not wait for locks goes on without.
const leastAttemptsOfLock = 32

// takesLock reports whether the call takes the lock before its next attempt.
func (u *update) takesLock() bool {
	return u.tries == u.Attempts-u.Attempts/4 && u.Attempts >= leastAttemptsOfLock && u.Wait.Attempts != 1
}

// update is one call under way.
type update struct {
	*Policy
	typed.Request
	Trace
	table   *typed.Table
	waiter  *unlocked.Call
	tries   int
	inRow   int                  // conflicts that were answered at once
	sent    bool                 // the present attempt has sent its write
	assumed bool                 // the present attempt starts from From
	id      protocol.WriteID     // of its write
	ring    types.AttributeValue // that the present attempt leaves; nil where the type has no version
}

// Update reads an item, changes it and writes the difference if it is as read,
// until that succeeds. create starts a new item where there is none.
func Update(ctx context.Context, t *typed.Table, p *Policy, key repo.Key, create bool, change func(context.Context, any) error) (item any, err error) {
	if change == nil {
		return nil, typed.NoChange()
	}
	raw, err := typed.KeyToWrite(ctx, t, key)
	if err != nil {
		return nil, err
	}
	ctx, told := t.Core.Observe.Call(ctx, p.Kind, typed.OperationOf(create), key.String)
	defer told.End(&err)
	item, _, err = Run(ctx, t, p, key, raw, typed.Request{Create: create, Change: typed.Inside(t, raw, change)})
	return item, err
}

// Run is Update with all that a caller may know before and wants to know
// afterwards; raw is the encoded key.
func Run(ctx context.Context, t *typed.Table, p *Policy, key repo.Key, raw ddb.Item, call typed.Request) (item any, _ Trace, err error) {
	u := &update{Policy: p, Request: call, table: t,
		waiter: &unlocked.Call{Waiter: lock.Waiter{Core: t.Core, Key: key, Raw: raw, Settings: p.Settings}}}
	err = u.waiter.Do(ctx, func() (err error) {
		item, err = u.run(ctx)
		return err
	})
	u.Waited = u.waiter.Waited()
	return item, u.Trace, err
}

func (u *update) run(ctx context.Context) (item any, err error) {
	image := u.From
	u.assumed = image != nil
	for {
		if image == nil {
			if image, err = u.read(ctx); err != nil {
				return item, err
			}
			if u.Read == nil {
				u.Read = image
			}
		}
		u.sent = false
		item, next, err := u.attempt(ctx, image)
		if u.assumed && !u.sent {
			next, err, u.After = nil, errAgain, nil
		}
		if err == nil || !errors.Is(err, errAgain) {
			return item, err
		}
		image, u.assumed = next, false
	}
}

// rereads is how often a call reads again, in a row, what was shown to it too late.
const rereads = 2

// read reads the item, and again if the answer was late and others write there: who starts
// from what is no more loses, and may not even hear of it in time.
func (u *update) read(ctx context.Context) (image ddb.Item, err error) {
	for again := 0; ; again++ {
		asked := time.Now()
		image, err = u.waiter.Core.GetFor(ctx, u.waiter.Raw, ddb.Options{Holding: true}) // others of the process wait behind it
		if err != nil || again == rereads || !u.waiter.Stale(asked) {
			break
		}
	}
	if err == nil && image == nil {
		image = ddb.Item{}
	}
	return image, err
}

// errAgain asks for another attempt.
var errAgain = errors.New("again")

// attempt changes an image and writes it. With errAgain it returns the image
// for the next attempt, nil where the item must be read again.
func (u *update) attempt(ctx context.Context, image ddb.Item) (item any, next ddb.Item, err error) {
	from, err := u.begin(image)
	if err != nil {
		return nil, nil, err
	}
	if !u.waiter.Core.Hidden(image) && u.Once.In(u.waiter.Core, image) { // whoever holds it
		u.After = image
		return from.Item, nil, nil
	}
	edit, err := u.edit(ctx, image, from)
	if err != nil {
		return nil, u.waiter.Fresh(), err
	}
	switch u.wants(edit, image) {
	case nothing:
		return nil, nil, nil
	case asItIs:
		u.After = image
		return edit.Item, nil, nil
	}
	if err := u.check(from, edit); err != nil {
		return nil, nil, err
	}
	if now, changed := edit.Claims(u.waiter.Core, image, u.waiter.Raw, u.count()); changed {
		return u.claim(ctx, image, now, edit)
	}
	u.id = protocol.NewWriteID()
	written, res, err := u.write(ctx, image, edit, u.id)
	if err != nil {
		return nil, nil, u.named(err)
	}
	switch u.fate(ctx, image, edit, res) {
	case committed:
		u.waiter.Core.Judged(u.id)
		u.applied(image, edit)
		return written, nil, nil
	case failed:
		return nil, nil, lock.Failed(u.waiter.Core, u.waiter.Key, res)
	case foundMade:
		u.waiter.Doubt.Settle()
		return nil, res.Image, errAgain // which finds it made
	case undecided:
		return nil, nil, u.undecided(image, res.Image)
	}
	if err := u.outdate(ctx, image, res.Image); err != nil {
		return nil, nil, err
	}
	next, err = u.conflict(ctx, res.Image) // without one after an outcome that others' images have decided
	return nil, next, err
}

// named says of which item an error is.
func (u *update) named(err error) error {
	return fmt.Errorf("%s: %w", u.waiter.Core.ItemName(u.waiter.Key), err)
}

// applied notes the item as the write has left it.
func (u *update) applied(image ddb.Item, edit typed.Edit) {
	if edit.Remove || u.Keep == nil || !u.Keep() {
		return
	}
	if len(image) == 0 {
		image = u.waiter.Raw
	}
	u.After = typed.ApplyTo(u.waiter.Core, image, edit.Diff, u.ring, u.count())
}

func (u *update) count() int64 {
	if u.Count == nil {
		return 1
	}
	return max(u.Count(), 1)
}

// write sends an edit under the condition that the item is as in the image. It
// returns the item as it will be.
func (u *update) write(ctx context.Context, image ddb.Item, edit typed.Edit, id protocol.WriteID) (item any, res ddb.Result, err error) {
	core := u.waiter.Core
	w := core.NewWrite()
	u.asRead(w, image)
	u.ring = typed.Writers(core, id, image)
	switch {
	case edit.Remove && u.Tombstone == nil:
		u.sent = true
		u.waiter.Expect(id, core.Ring(image)) // a delete leaves no id, but others' writes tell that it was not
		return item, u.waiter.Delete(ctx, w.Delete(u.waiter.Raw), ddb.Options{Holding: true, Decide: true}), nil
	case edit.Remove:
		u.Tombstone(w, image)
		w.Set(core.Attr.Writers, core.Push(id, image))
	default:
		w.ApplyOn(image, edit.Diff)
		item = typed.Bump(u.table, w, u.ring, edit.Item, u.count())
		if core.Version == "" && u.Ring {
			w.Set(core.Attr.Writers, core.Push(id, image))
		}
		if core.Hidden(image) {
			typed.MakeVisible(core, w, edit.Diff)
		}
	}
	in, err := w.Update(u.waiter.Raw)
	if err != nil {
		return item, res, err
	}
	u.sent = true
	u.waiter.Expect(id, core.Ring(image))
	begins := len(image) == 0 // again it could begin after it was deleted
	return item, u.waiter.Update(ctx, in, ddb.Options{OnItem: begins, Holding: true, Decide: !begins, Hedge: u.Hedge}), nil
}

// begin decodes what an attempt starts from.
func (u *update) begin(image ddb.Item) (typed.Snapshot, error) {
	core := u.waiter.Core
	switch {
	case !core.Hidden(image) && u.Edit == nil && u.Check == nil:
		return typed.Start(u.table, image)
	case !core.Hidden(image):
		return typed.SnapshotOf(u.table, image)
	}
	if !u.Create {
		return typed.Snapshot{}, lock.NotFound(u.waiter.Key, core.Name)
	}
	from, err := typed.NewSnapshot(u.table, u.waiter.Raw)
	from.Raw = image
	return from, err
}

// demanded are the attributes that must be as read: in the call's turn without lockToken,
// which moves whenever somebody comes to stand behind it.
func (u *update) demanded() []string {
	if !u.waiter.InTurn() {
		return u.Seen
	}
	token := u.waiter.Core.Attr.LockToken
	return slices.DeleteFunc(slices.Clone(u.Seen), func(name string) bool { return name == token })
}

// asRead demands that nobody wrote since the image was taken.
func (u *update) asRead(w *protocol.Write, image ddb.Item) {
	core := u.waiter.Core
	if len(image) == 0 {
		w.IfAbsent(core.Partition)
		return
	}
	w.IfExists(core.Partition)
	w.IfSeen(image, core.Attr.Writers, core.Attr.LockStub, core.Attr.Tombstone)
	w.IfSeen(image, u.demanded()...)
	u.waiter.IfFree(w)
}
