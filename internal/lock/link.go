package lock

// behind returns the Locker behind a *lockedread.Locker[T].
var behind func(locker any) *Locker

// SetOpen is called by package lockedread, once, when the program starts.
func SetOpen(f func(locker any) *Locker) { behind = f }

// Of is the Locker behind a *lockedread.Locker[T].
func Of(locker any) *Locker { return behind(locker) }
