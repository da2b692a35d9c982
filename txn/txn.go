package txn

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/dynahold/dynahold/internal/hold"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/repo"
)

// Config are the settings of a transaction. The zero value works.
type Config struct {
	// Attempts bounds how often the closure runs when others write first, and how
	// often a commit is sent that meets other transactions. Default 256.
	Attempts int
	// Wait bounds the sleeps after conflicts: random, up to what grows with the conflicts
	// that transactions lately had at the items, from Min, by default 1 ms, to Max, by
	// default 100 ms. Who has had twice as many as others sleeps for less, and goes before
	// them. How long an item is waited for that somebody holds is its repository's setting.
	// Its Attempts is an error.
	Wait repo.Wait
	// Logger, MeterProvider and TracerProvider hear of calls of Run, as those of
	// repo.TableConfig of what is sent to a table; and have the same defaults.
	Logger         *slog.Logger
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
}

const (
	defaultAttempts = 256
	leastWait       = time.Millisecond
	mostWait        = 100 * time.Millisecond
)

// Tx is a transaction under way. It is for its closure alone, while that runs;
// goroutines of the closure may share it.
type Tx struct{ run *transaction.Tx }

func init() {
	hold.SetOpen(func(tx any) hold.Transaction {
		if tx, _ := tx.(*Tx); tx != nil {
			return tx.run
		}
		return nil
	})
}

// Keys are keys of one repository, as its method Keys makes them.
type Keys interface {
	// Table is the name of the repository's table.
	Table() string
}

// Run runs fn, and commits what it has done in its transaction. See the package
// documentation.
func Run(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return Config{}.Run(ctx, fn)
}

// Run is the function Run with settings.
func (c Config) Run(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return c.with(fn, func(c transaction.Config, fn func(context.Context, *transaction.Tx) error) error {
		return transaction.Run(ctx, c, fn)
	})
}

// with checks the settings, and gives them and a closure the form that the engine
// knows.
func (c Config) with(fn func(context.Context, *Tx) error, start func(transaction.Config, func(context.Context, *transaction.Tx) error) error) error {
	if c.Wait.Max == 0 {
		c.Wait.Max = max(mostWait, c.Wait.Min)
	}
	if err := settings.FillAll(settings.Default("Attempts", &c.Attempts, defaultAttempts), settings.Sleeps(&c.Wait, leastWait, "Attempts")); err != nil {
		return err
	}
	run := func(ctx context.Context, tx *transaction.Tx) error { return fn(ctx, &Tx{tx}) }
	if fn == nil {
		run = nil
	}
	observe, err := c.observer()
	if err != nil {
		return err
	}
	return public(start(transaction.Config{Attempts: c.Attempts, Wait: c.Wait, Observe: observe}, run))
}

// Operation is a transaction that is applied once, under an id: see [Once]. It is
// safe for concurrent use.
type Operation struct {
	cfg   Config
	inner *transaction.Operation
}

// Once is a transaction under the id of an operation, such as that of a message: it is
// applied once, however often it is run, if it writes an item. Its ids are apart from those of
// a repository's Once: what came under one comes again under the other. See "Under an id" in
// the package documentation.
func Once(id string) *Operation { return Config{}.Once(id) }

// Once is the function Once with settings.
func (c Config) Once(id string) *Operation { return &Operation{c, transaction.NewOperation(id)} }

// WithFingerprint is the same transaction, for a request whose fingerprint this is: where
// an item remembers the id with another one, Run fails with repo.ErrMismatch. See Once of
// package optimistic.
func (o *Operation) WithFingerprint(fingerprint []byte) *Operation {
	if !o.made() {
		return o
	}
	return &Operation{o.cfg, o.inner.WithFingerprint(fingerprint)}
}

// Run is the function [Run] under the id. If the transaction was applied under it
// before, nothing is written, and the error is nil whatever fn returns.
func (o *Operation) Run(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	if !o.made() {
		return fmt.Errorf("%w: the operation is nil, or not from Once", repo.ErrConfig)
	}
	return o.cfg.with(fn, func(c transaction.Config, fn func(context.Context, *transaction.Tx) error) error {
		return o.inner.Run(ctx, c, fn)
	})
}

// Repeated reports whether the Run that ended last has found its id.
func (o *Operation) Repeated() bool { return o.made() && o.inner.Repeated() }

func (o *Operation) made() bool { return o != nil && o.inner != nil }

// Prefetch reads items that the closure will touch: with one TransactGetItems, so
// that they are of one moment. Items of a pessimistic repository are locked
// instead, one request for each, in the order that all transactions share: whoever
// names all items beforehand never has to take locks twice.
func (tx *Tx) Prefetch(ctx context.Context, keys ...Keys) error {
	var all []transaction.Keys
	for i, k := range keys {
		own, ok := k.(transaction.Keys)
		if !ok {
			return fmt.Errorf("%w: keys %d of Prefetch are not from a repository's Keys", repo.ErrConfig, i+1)
		}
		all = append(all, own)
	}
	return public(transaction.Of(tx).Prefetch(ctx, all...))
}

// Held is something held that a transaction can require: see [repo.Held].
type Held = repo.Held

// Require lets the transaction be applied only if all of this is still held: the
// commit compares holder and token on the row of each, in DynamoDB, so that nobody
// who has taken it over can come between. What was lost fails the transaction, with
// an *[Error] that has ErrLockLost for its row; nothing is written, the closure does
// not run again, and the handle's context ends. What has ended already, or is nil, is
// refused at once, and the transaction with it. A lease that runs out after Require is not
// missed: until somebody takes it over, it is held.
//
// Each row is one more item of the commit, of two write units; renewals go on
// meanwhile. A transaction that writes nothing demands of one moment all that it has
// read, and that it was held.
func (tx *Tx) Require(held ...Held) error {
	for _, h := range held {
		if v := reflect.ValueOf(h); h == nil || v.Kind() == reflect.Pointer && v.IsNil() {
			return transaction.Of(tx).Doom(fmt.Errorf("%w: what is to be held is nil", repo.ErrConfig))
		}
		if err := h.RequireIn(tx); err != nil {
			return transaction.Of(tx).Doom(err)
		}
	}
	return nil
}

// ErrTooLarge is [repo.ErrTooLarge]: of a transaction with more than 100 items or
// 4 MB, too. Nothing was written.
var ErrTooLarge = repo.ErrTooLarge

// Failure is an item because of which a transaction failed.
type Failure struct {
	Table string
	Key   repo.Key
	Err   error
}

// Error says which items a transaction failed for, each with its error:
// repo.ErrConflict, repo.ErrLocked, repo.ErrLockLost, repo.ErrLockExpired,
// repo.ErrTooLarge, repo.ErrSchema; nothing was written. Or repo.ErrOutcomeUnknown,
// of all items: all are written or none, and nobody can tell. errors.Is and errors.As
// find the error of any of them. An error of the closure comes back as it is.
type Error struct {
	Failed []Failure
	err    *transaction.Error
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error of each item.
func (e *Error) Unwrap() []error { return e.err.Unwrap() }

// public gives an error of the engine the form that users know.
func public(err error) error {
	inner, ok := err.(*transaction.Error) //nolint:errorlint // only the engine's own, as it comes
	if !ok {
		return err
	}
	e := &Error{err: inner}
	for _, f := range inner.Failed {
		e.Failed = append(e.Failed, Failure(f))
	}
	return e
}
