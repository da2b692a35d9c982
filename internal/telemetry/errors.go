package telemetry

// NewError makes an error with a name of its own in spans and metrics (error.type).
func NewError(name, text string) error { return &namedError{name, text} }

// namedError names itself by the method that OpenTelemetry's conventions for Go ask an
// error for.
type namedError struct{ name, text string }

func (e *namedError) Error() string     { return e.text }
func (e *namedError) ErrorType() string { return e.name }

// Errors of packages that package repo must not import, and which its verdicts must know.
var (
	// NoResult is once.ErrNoResult: the operation was made.
	NoResult = NewError("no_result", "operation completed, but its result was not kept")
	// Busy is semaphore.ErrBusy.
	Busy = NewError("busy", "resource is busy")
	// NoWork is semaphore.ErrNoWork: there may be some later.
	NoWork = NewError("no_work", "no work")
)

// Returned is an error that a change's function, of the program, has returned: what it says of
// what was written it says of another call.
type Returned struct{ error }

func (r *Returned) Unwrap() error { return r.error }

// Return marks such an error.
func Return(err error) error { return &Returned{err} }

// Final is an error of which a part is no reason to make the call again.
type Final struct{ error }

func (f *Final) Unwrap() error { return f.error }

// End marks such an error.
func End(err error) error { return &Final{err} }

// Partly is why a call has ended that had written a part of what it was to write: of the whole
// neither that it was written is true nor that it was not.
type Partly struct{ error }

func (p *Partly) Unwrap() error { return p.error }

// Part marks such an error.
func Part(err error) error { return &Partly{err} }
