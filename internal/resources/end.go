package resources

// Gone is what became of a permit or a job that was to be ended, and that is not there.
type Gone int

// What became of it.
const (
	Undecided Gone = iota
	ByThisEnd      // by this request, an attempt before it, or a copy of it
	ByOthers       // they took it for dead, or ended it by force
)

// JudgeGone judges an end that has found what it was to end gone. passed says that the row
// shows that an earlier attempt was applied; told that it says that others have ended it,
// and that it was there once only; silent that it says so of an earlier one, perhaps, or
// has gone with all evidence.
func JudgeGone(passed, told, silent, expired bool) Gone {
	switch {
	case passed:
		return ByThisEnd
	case told:
		return ByOthers
	case silent, expired:
		return Undecided
	}
	// Before the deadline nobody else takes it for dead: this end has removed it, or a copy
	// of it that the network made.
	return ByThisEnd
}
