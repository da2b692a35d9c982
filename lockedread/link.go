package lockedread

import (
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/typed"
)

// What strategies and transactions need of a locker, and users do not see.
func init() {
	inner := func(l any) *locker { return l.(interface{ inner() *locker }).inner() }
	local.SetOpen(func(l any) *local.Line { return inner(l).line })
	typed.SetLocked(func(l any) typed.Locked { return inner(l).change })
}

func (l *Locker[T]) inner() *locker { return l.l }
