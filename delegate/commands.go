package delegate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/jsontype"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/recent"
	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/telemetry/gauges"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Config are the settings. The zero value works for a table with a sort key.
type Config struct {
	// Mail is a table for the rows of mail, as [NewMailTable] makes it; several tables of
	// items may share one. Default: the table of the items, whose key must have a sort
	// key, and be of strings or bytes.
	Mail *repo.KeyTable
	// Errors are errors that commands return and callers ask for with errors.Is, by names
	// that are the same in all programs. Of others only the text comes back.
	Errors map[string]error
	// ClockSkew is how much clocks may differ before an expired lock is broken, or a mail
	// is too old to be carried out. Default 1 s; negative: none.
	ClockSkew time.Duration
	// Wait bounds the sleeps while somebody holds the item, and after conflicts.
	Wait repo.Wait
}

// Source is a repository whose items commands change: one of package optimistic, or of
// package pessimistic, or whatever else writes their table by this library.
type Source[T any] interface{ Table() *repo.Table[T] }

// Commands are the commands of one program on the items of one table. It is safe for
// concurrent use.
type Commands[T any] struct{ e *engine }

// NewMailTable is a table for rows of mail: partition key "mailbox", sort key "slot",
// both strings. Its EnsureTable makes it.
func NewMailTable(client repo.Client, name string, cfg repo.TableConfig) (*repo.KeyTable, error) {
	return repo.NewKeyTable(client, name, repo.KeySchema{Partition: repo.KeyAttribute{Name: "mailbox"}, Sort: repo.KeyAttribute{Name: "slot"}}, cfg)
}

// New checks the settings; T must have a field tagged repo:"version". It sends and starts
// nothing.
func New[T any](items Source[T], cfg Config) (*Commands[T], error) {
	if v := reflect.ValueOf(items); items == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("%w: there is no repository of the items", repo.ErrConfig)
	}
	table := items.Table()
	if err := typed.CheckMade(table); err != nil {
		return nil, err
	}
	e, err := newEngine(typed.TableOf(table), table.KeyTable, cfg)
	if err != nil {
		return nil, err
	}
	return &Commands[T]{e}, nil
}

// engine is Commands of any type.
type engine struct {
	table  *typed.Table
	core   *protocol.Core
	mail   *mailbox
	policy cas.Policy
	errors map[string]error
	wanted *lock.Contention
	hedges ddb.Budget            // of posts and of the leader's writes
	slots  *recent.Memory[place] // of items that nobody here changes at the moment
	gauges *gauges.Gauges

	working sync.WaitGroup // lines
	closing chan struct{}

	mu       sync.Mutex
	closed   bool                // guarded by mu
	commands map[string]*command // guarded by mu
	lines    map[string]*line    // guarded by mu: of items that callers want to change
}

const slotsKept = 1024

func newEngine(table *typed.Table, keys *repo.KeyTable, cfg Config) (*engine, error) {
	core := table.Core
	if core.Version == "" {
		return nil, fmt.Errorf("%w: commands count versions: add an integer field tagged `repo:\"version\"`", repo.ErrSchema)
	}
	e := &engine{table: table, core: core, errors: maps.Clone(known), wanted: lock.NewContention(), slots: recent.New[place](slotsKept),
		closing: make(chan struct{}), commands: map[string]*command{}, lines: map[string]*line{}}
	for name, err := range cfg.Errors {
		if err == nil || name == "" || e.errors[name] != nil || !travels(name) {
			return nil, fmt.Errorf("%w: Errors has no error, or no name of its own that is a text, at %q", repo.ErrConfig, name)
		}
		e.errors[name] = err
	}
	at := keys
	if cfg.Mail != nil {
		at = cfg.Mail
	}
	var err error
	if e.mail, err = newMailbox(at, core.Name, cfg.Mail != nil); err != nil {
		return nil, err
	}
	if e.gauges, err = gauges.Of(core.Observe); err != nil {
		return nil, err
	}
	waiting, err := lock.NewSettings(core, telemetry.Delegate, cfg.Wait, settings.LeastWait, cfg.ClockSkew)
	if err != nil {
		return nil, err
	}
	e.policy = cas.Policy{Settings: waiting, Attempts: attempts, Seen: core.Named(core.Version, core.Attr.LockToken, core.Type)}
	return e, nil
}

const attempts = 64

// Close refuses further calls, and waits until those under way have ended, and what this
// process leads; or until ctx ends. Else a leader without anything to do ends by itself,
// after 40 ms.
func (c *Commands[T]) Close(ctx context.Context) error {
	e := c.e
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.closing)
	}
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() { e.working.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ddb.CtxError(ctx)
	}
}

// isClosing reports whether nobody will call any more.
func (e *engine) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// command is what a program does under a name.
type command struct {
	name string
	run  func(ctx context.Context, item any, args string) (result string, err error)
}

// Call is a command that can be called. It is safe for concurrent use.
type Call[A, R any] struct {
	e    *engine
	name string
	id   string
	once bool
}

// Command registers what a name does to an item, and returns what calls it. run must be
// deterministic, have no effect elsewhere, and be the same under that name in every
// program: it may run in any of them, for any caller, more than once, on the item as it is
// then. If it returns an error nothing of it is applied. Arguments and result travel as
// JSON. ErrConfig: the name is no text, longer than 255 bytes, or taken. ErrSchema: a type has
// what JSON would leave out.
func Command[T, A, R any](c *Commands[T], name string, run func(ctx context.Context, item *T, args A) (R, error)) (*Call[A, R], error) {
	if c == nil || c.e == nil || run == nil || name == "" || len(name) > 255 || !travels(name) {
		return nil, fmt.Errorf("%w: a command needs Commands from New, a name, a text of at most 255 bytes, and what it does", repo.ErrConfig)
	}
	if err := errors.Join(jsontype.Check(reflect.TypeFor[A]()), jsontype.Check(reflect.TypeFor[R]())); err != nil {
		return nil, fmt.Errorf("%w: command %q: %w", repo.ErrSchema, name, err)
	}
	e := c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.commands[name] != nil {
		return nil, fmt.Errorf("%w: there is a command %q already", repo.ErrConfig, name)
	}
	e.commands[name] = &command{name, func(ctx context.Context, item any, args string) (string, error) {
		var a A
		if err := json.Unmarshal([]byte(args), &a); err != nil {
			return "", fmt.Errorf("%w: command %q: the arguments do not fit %T: %w", repo.ErrSchema, name, a, redact.Error(err))
		}
		r, err := run(ctx, item.(*T), a)
		if err != nil {
			return "", err
		}
		return encode("result", name, r, MostResult)
	}}
	return &Call[A, R]{e: e, name: name}, nil
}

// travels reports whether a name is the same in a mail and in its answers: of bytes that are
// no text the JSON of a request makes one and the same sign, and those below a space stand
// between names there.
func travels(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsAny(name, "\x00\x01")
}

// encode is a value as it travels.
func encode(what, name string, v any, most int) (string, error) {
	text, err := json.Marshal(v)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: the %s of command %q: %w", repo.ErrSchema, what, name, redact.Error(err))
	case len(text) > most:
		return "", fmt.Errorf("%w: the %s of command %q has %d bytes of JSON, %d are the most", repo.ErrTooLarge, what, name, len(text), most)
	}
	return string(text), nil
}

// Once is the call under the id of an operation: it is applied once to an item, however
// often it comes ([ErrRepeated]). The ids are those of optimistic.Repository.Once, in UTF-8
// (else ErrConfig).
func (c *Call[A, R]) Once(id string) *Call[A, R] {
	under := *c
	under.id, under.once = id, true
	return &under
}

// Do has the command applied to an item, by this process or by another one, and returns
// its result. Who is alone sends a read and a write, as optimistic.Repository.Update. Where others change
// the item at the same time: one write of a unit or more, some reads, and a share of the
// leader's.
//
// nil: applied; repo.ErrDone: too, but the result does not fit R. *[RefusedError]: the
// command refused, nothing was applied. ErrRepeated: see Once. repo.ErrNotFound: there is no
// item. repo.ErrOutcomeUnknown: nobody can tell. Every other error, the context's too: not
// applied.
func (c *Call[A, R]) Do(ctx context.Context, key repo.Key, args A) (result R, err error) {
	text, err := encode("arguments", c.name, args, MostArgs)
	if err != nil {
		return result, err
	}
	if c.once && (c.id == "" || !utf8.ValidString(c.id)) {
		return result, fmt.Errorf("%w: the id of Once is empty, or no text: use what names the message or request, and stays when it comes again", repo.ErrConfig)
	}
	answer, err := c.e.do(ctx, key, order{c.name, text, c.id})
	if err == nil {
		answer, err = c.e.read(c.name, answer)
	}
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal([]byte(answer), &result); err != nil {
		return result, fmt.Errorf("%w: %w: the result of command %q does not fit %T: %w", repo.ErrDone, repo.ErrSchema, c.name, result, redact.Error(err))
	}
	return result, nil
}

func (e *engine) command(name string) *command {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.commands[name]
}
