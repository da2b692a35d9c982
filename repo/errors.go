package repo

import (
	"errors"
	"fmt"
	"time"
)

// The sentinels: which error it is. Test with errors.Is.
var (
	// ErrNotFound: there is no such item. Nothing was written.
	ErrNotFound = errors.New("item not found")
	// ErrExists: the item that should be created is there already. Nothing was written.
	ErrExists = errors.New("item exists already")
	// ErrConflict: others wrote first. Nothing was written. See [ConflictError].
	ErrConflict = errors.New("conflict with other writers")
	// ErrCondition: the caller's own condition of an Apply does not hold. Nothing was
	// written. See [ConditionError].
	ErrCondition = errors.New("condition does not hold")
	// ErrMismatch: the id of an operation (Once) was given with another request, whose
	// fingerprint differs. Nothing was written.
	ErrMismatch = errors.New("id of another request")
	// ErrNotUnique: another item has the value of a unique attribute. Nothing was written.
	// See [NotUniqueError].
	ErrNotUnique = errors.New("value of a unique attribute belongs to another item")
	// ErrStale: the event is older than what is stored. Nothing was written.
	ErrStale = errors.New("event is older than the stored one")
	// ErrLocked: somebody else holds the item. Nothing was written. See [LockedError].
	ErrLocked = errors.New("item is locked by another")
	// ErrLockExpired: the own lease ran out and nobody took over yet. Nothing was written.
	ErrLockExpired = errors.New("own lock expired")
	// ErrLockLost: somebody took over, or an operator broke the lock. Nothing was written.
	ErrLockLost = errors.New("own lock was lost to another")
	// ErrReleased: the hold was already ended by its holder (committed, deleted, released).
	ErrReleased = errors.New("lock was already released")
	// ErrNotHeld: nobody holds the item with the given token.
	ErrNotHeld = errors.New("no such hold")
	// ErrOutcomeUnknown: the write may or may not have been applied, and no
	// evidence is left. Never returned as a guess.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrDone: the change is written, or the function of a Do has run to its end, and what
	// failed came behind that: the item cannot be read ([ErrSchema] beside it), a result does
	// not fit its type (the same), or what was held was lost before it was given back.
	ErrDone = errors.New("done, but for what came behind it")
	// ErrSchema: the table, the item or the type are not what they should be. See
	// [TypeError].
	ErrSchema = errors.New("schema mismatch")
	// ErrKey: a key is missing, empty, too long or of a wrong type. Nothing was sent.
	ErrKey = errors.New("invalid key")
	// ErrPage: a page token is damaged, of another query, or of a table with another
	// secret. Nothing was sent.
	ErrPage = errors.New("invalid page token")
	// ErrFixed: a change altered the key, the version, the item's type, or when it was
	// made or changed, which are not its to alter. Nothing was written.
	ErrFixed = errors.New("change altered what the library writes")
	// ErrTooLarge: the item would not fit, or could not be locked any more.
	// Nothing was written.
	ErrTooLarge = errors.New("item too large")
	// ErrNoTable: there is no such table at the endpoint that was asked.
	ErrNoTable = errors.New("table not found")
	// ErrDenied: credentials are missing, wrong, do not come or are not allowed to do this.
	ErrDenied = errors.New("access denied")
	// ErrConfig: a setting makes no sense. Nothing was sent.
	ErrConfig = errors.New("invalid configuration")
	// ErrNested: a call inside a change of the same item, one that waits for what its own
	// context holds, or one inside a transaction's closure without In(tx): a mistake in
	// the program, as ErrConfig is, which it is too. Nothing was sent.
	ErrNested error = nested{}
	// ErrNoTransactions: the endpoint, or what stands in for a client, has no transactions,
	// which the call needs. It is ErrConfig, too. Nothing was written.
	ErrNoTransactions error = noTransactions{}
)

// noTransactions is the one error of calls that need what the endpoint does not have.
type noTransactions struct{}

func (noTransactions) Error() string { return "no transactions at this endpoint" }

// Is makes errors.Is(err, ErrConfig) true.
func (noTransactions) Is(target error) bool { return target == ErrConfig }

// nested is the one error of calls that are made where they cannot be.
type nested struct{}

func (nested) Error() string { return "call in a place where it cannot be made" }

// Is makes errors.Is(err, ErrConfig) true.
func (nested) Is(target error) bool { return target == ErrConfig }

// itemName is what an error calls an item.
func itemName(table string, key Key) string { return fmt.Sprintf("item %v in table %q", key, table) }

// LockedError says who holds an item.
type LockedError struct {
	Table string
	Key   Key
	Owner string    // who holds it; the random part of the id is left out
	Until time.Time // when others may take over, on the holder's clock; zero if the item does not say or there is none
	Token int64     // fencing token of the hold; 0 for one taken by hand
}

func (e *LockedError) Error() string {
	until := "with no end"
	if !e.Until.IsZero() {
		until = "until " + e.Until.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s is locked by %q %s (token %d)", itemName(e.Table, e.Key), e.Owner, until, e.Token)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// CloseError is what a client held and could not give back when it was closed. It
// ends with its lease, if it has one.
type CloseError struct {
	Table string
	Key   Key
	Token int64 // fencing token of the hold
	Err   error
}

func (e *CloseError) Error() string {
	return fmt.Sprintf("%s, token %d, was not given back: %v", itemName(e.Table, e.Key), e.Token, e.Err)
}

// Unwrap gives the reason.
func (e *CloseError) Unwrap() error { return e.Err }

// ConflictError says how often a write was tried.
type ConflictError struct {
	Table    string
	Key      Key
	Attempts int
}

func (e *ConflictError) Error() string {
	if e.Attempts == 1 {
		return itemName(e.Table, e.Key) + ": others wrote first"
	}
	return fmt.Sprintf("%s: others wrote first in each of %d attempts", itemName(e.Table, e.Key), e.Attempts)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// ConditionError has the item that failed the caller's own condition.
type ConditionError struct {
	Table string
	Key   Key
	Item  any // a T: the item as it is stored
}

func (e *ConditionError) Error() string {
	return itemName(e.Table, e.Key) + ": its condition does not hold"
}

// Is makes errors.Is(err, ErrCondition) true.
func (e *ConditionError) Is(target error) bool { return target == ErrCondition }

// NotUniqueError says which item has the value that another one was to have. It does not
// say the value.
type NotUniqueError struct {
	Table string
	Key   Key    // of the item that was to have it
	Field string // the unique attribute, or the name that several have together
	Owner Key    // of the item that has it
}

func (e *NotUniqueError) Error() string {
	return fmt.Sprintf("%s: the value of %q belongs to item %v", itemName(e.Table, e.Key), e.Field, e.Owner)
}

// Is makes errors.Is(err, ErrNotUnique) true.
func (e *NotUniqueError) Is(target error) bool { return target == ErrNotUnique }
