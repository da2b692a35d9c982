package local

// behind returns the Line behind a *lockedread.Locker[T].
var behind func(locker any) *Line

// SetOpen is called by package lockedread, once, when the program starts.
func SetOpen(f func(locker any) *Line) { behind = f }

// Of is the Line behind a *lockedread.Locker[T].
func Of(locker any) *Line { return behind(locker) }
