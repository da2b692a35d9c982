package delegate

import (
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/delegation"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/repo"
)

// conclude gives a batch that was carried out here its verdicts.
func (l *line) conclude(b *batch, err error) {
	l.settled = !errors.Is(err, repo.ErrOutcomeUnknown)
	switch {
	case err == nil:
		b.answer(b.answers)
	case errors.Is(err, repo.ErrOutcomeUnknown):
		l.slot = "" // whatever lies there under its numbers is nobody's from now on
		l.doubtful(b, err)
	case len(b.callers) > 1 && ofOne(err):
		l.again(b.callers, true)
		b.over()
	default:
		b.fail(err)
	}
}

// doubtful gives the error to those whose commands may be applied. Those that have
// refused are not; what they refused for may never have been, so they run again.
func (l *line) doubtful(b *batch, err error) {
	var refused []*caller
	for i, c := range b.callers {
		if i < len(b.changed) && !b.changed[i] {
			refused = append(refused, c)
			continue
		}
		c.end <- verdict{err: err}
	}
	if len(refused) > 0 {
		l.again(refused, true)
	}
	b.over()
}

// ofOne reports whether an error may be that of one command of several.
func ofOne(err error) bool {
	for _, e := range []error{repo.ErrTooLarge, repo.ErrSchema, repo.ErrFixed, repo.ErrStale, repo.ErrNotUnique} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// giveUp ends a batch with an error that says that nothing was written, if that is true
// of its mail, too.
func (l *line) giveUp(b *batch, err error) {
	if !b.posted {
		l.conclude(b, err)
		return
	}
	fate, answers, why := l.takeBack(b)
	l.settled = fate == delegation.MailServed
	switch {
	case fate == delegation.MailServed && (isTaken(answers) || len(answers) != len(b.callers) || answers[0] == unknown):
		b.fail(err)
	case fate == delegation.MailServed:
		b.answer(answers)
	default:
		l.slot = ""
		b.fail(lock.UnknownOutcome(l.e.core.Table, l.key, fmt.Errorf("its mail was put, and %w: %w", why, err)))
	}
}
