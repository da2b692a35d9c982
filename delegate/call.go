package delegate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// do has a command carried out.
func (e *engine) do(ctx context.Context, key repo.Key, o order) (answer string, err error) {
	raw, err := e.table.EncodeKey(key)
	if err == nil {
		err = typed.Refuse(ctx, e.table, key, raw)
	}
	if err != nil {
		return "", err
	}
	ctx, told := e.core.Observe.Call(ctx, telemetry.Delegate, "Do", key.String)
	defer told.End(&err)
	if err := ddb.CtxError(ctx); err != nil {
		return "", err
	}
	text := e.core.KeyText(raw)
	if e.inside(text) { // with another context than the command's
		return "", nesting.Own(nesting.ItemOf(e.core.Table, raw), key)
	}
	c := &caller{order: o, ctx: ctx, end: make(chan verdict, 1)}
	l := e.join(key, raw, text, c)
	if l == nil {
		return "", fmt.Errorf("%w: the commands are closed", repo.ErrConfig)
	}
	select {
	case v := <-c.end:
		return v.answer, v.err
	case <-ctx.Done():
	}
	b, began := e.leave(l, c)
	if !began {
		return "", ddb.CtxError(ctx)
	}
	if b != nil {
		b.leave(context.Cause(ctx))
	}
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case v := <-c.end:
		return v.answer, v.err
	case <-timer.C:
		return "", lock.UnknownOutcome(e.core.Table, key, ddb.CtxError(ctx))
	}
}

// inside reports whether a call at an item comes from a command on it, for which it would
// wait.
func (e *engine) inside(text string) bool {
	e.mu.Lock()
	l := e.lines[text]
	e.mu.Unlock()
	if l == nil {
		return false
	}
	at := l.hands.Load()
	return at != 0 && at == goroutine.Number()
}

// join adds a caller to the line of its item, and begins one where there is none.
func (e *engine) join(key repo.Key, raw ddb.Item, text string, c *caller) *line {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	l := e.lines[text]
	if l == nil {
		l = &line{e: e, key: lock.OwnKey(e.table.KeyTable, key, raw), raw: raw, text: text, base: e.mail.base(text), arrived: make(chan struct{}, 1), place: e.slots.Get(text)}
		e.lines[text] = l
		e.working.Go(l.work)
	}
	l.waiting = append(l.waiting, c)
	ddb.Signal(l.arrived)
	return l
}

// leave takes a caller out of its line; if its command is under way already, the batch
// that has it.
func (e *engine) leave(l *line, c *caller) (b *batch, began bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(l.waiting, c); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return nil, false
	}
	if l.inside != nil && slices.Contains(l.inside.callers, c) {
		return l.inside, true
	}
	return nil, true
}
