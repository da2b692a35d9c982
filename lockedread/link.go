package lockedread

import "github.com/dynahold/dynahold/internal/local"

// What transactions need of a locker, and users do not see.
func init() {
	local.SetOpen(func(locker any) *local.Line { return locker.(interface{ inner() *local.Line }).inner() })
}

func (l *Locker[T]) inner() *local.Line { return l.l.line }
