package lockedread

import "github.com/dynahold/dynahold/internal/lock"

// What transactions need of a locker, and users do not see.
func init() {
	lock.SetOpen(func(locker any) *lock.Locker { return locker.(interface{ inner() *lock.Locker }).inner() })
}

func (l *Locker[T]) inner() *lock.Locker { return l.l.line.Locker }
