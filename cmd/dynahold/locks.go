package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/record"
	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

type lockCommands struct {
	List     locksListCommand     `cmd:"" help:"List the locks that are held, or were held and not released. Reads the whole table."`
	Show     locksShowCommand     `cmd:"" help:"Show one lock."`
	Watch    locksWatchCommand    `cmd:"" help:"Watch the locks that are held: a live view on a terminal, a line for each change in a pipe."`
	Timeline locksTimelineCommand `cmd:"" help:"Who held which lock when, from records of watch: a table, or a page for a browser."`
	Break    locksBreakCommand    `cmd:"" help:"End a hold by force: its holder learns it, and its commit or unlock is refused."`
}

// lockFlags name one lock: of package mutex, or an item that is locked.
type lockFlags struct {
	tableFlags
	Name string `arg:"" help:"Name of the lock: the value of the table's partition key; bytes in base64."`
	Sort string `arg:"" optional:"" help:"Value of the sort key, where the table has one."`
}

// lockDocumentOf is a lock as JSON.
func lockDocumentOf(i mutex.Info, now time.Time) record.Lock {
	d := record.Lock{
		Name: keyText(i.Key.Partition), Sort: keyText(i.Key.Sort), Holder: i.Owner, Token: i.Token, NoneLostAbove: i.Lost, Lost: lostBefore(i),
		Mode: i.Mode.String(), Since: stated(i.Since), Until: stated(i.Until), Expired: i.Expired(now), Handed: i.Handed, Waiting: i.Waiting, Payload: string(i.Payload),
	}
	if i.Handed {
		d.Holder = "" // the row names none
	}
	if !utf8.Valid(i.Payload) {
		d.Payload = base64.StdEncoding.EncodeToString(i.Payload)
	}
	return d
}

// lostBefore is the token before that of a hold, if the row shows that somebody lost it; else 0.
// The number of a row begins right below its first token, which is a time in microseconds:
// a token before the second in which its holder asked for the lock is not the first.
func lostBefore(i mutex.Info) int64 {
	if i.Lost > 0 && i.Lost == i.Token-1 && time.UnixMicro(i.Token).Before(i.Since) {
		return i.Lost
	}
	return 0
}

// ends says until when something is held; nil: without an end.
func ends(until *time.Time, expired bool, now time.Time) string {
	switch {
	case until == nil:
		return "without an end (fail-closed)"
	case expired:
		return moment(*until, now) + ", expired: whoever asks takes it over"
	}
	return moment(*until, now)
}

type locksListCommand struct {
	tableFlags
}

// Run implements the command.
func (cmd *locksListCommand) Run(ctx context.Context, c *console) error {
	t, locker, err := cmd.locker(ctx)
	if err != nil {
		return err
	}
	now, list, rows := time.Now(), []record.Lock{}, [][]string(nil)
	unread := collect(locker.List(ctx), func(info mutex.Info) {
		d := lockDocumentOf(info, now)
		list, rows = append(list, d), append(rows, lockRow(d, now))
	})
	if len(rows) == 0 && unread == nil {
		if err := t.noLocks(ctx); err != nil {
			return err
		}
		if err := t.freeElsewhere(ctx); err != nil {
			return err
		}
	}
	return c.printList(cmd.Output, list, lockHead, rows, "nobody holds a lock", unread)
}

// lockHead are the columns of lockRow.
var lockHead = []string{"lock", "holder", "token", "since", "until"}

func lockRow(d record.Lock, now time.Time) []string {
	return []string{strings.TrimSpace(d.Name + " " + d.Sort), shown.Holder(d.Holder, d.Handed), fmt.Sprint(d.Token), since(d.Since, now), ends(d.Until, d.Expired, now)}
}

type locksShowCommand struct{ lockFlags }

// Run implements the command.
func (cmd *locksShowCommand) Run(ctx context.Context, c *console) error {
	_, _, _, info, err := cmd.inspect(ctx)
	switch now := time.Now(); {
	case err != nil:
		return err
	case cmd.Output == "json":
		return c.printJSON(lockDocumentOf(info, now))
	default:
		return c.print(factsText(lockFacts(info, now)))
	}
}

// inspect reads the lock.
func (f *lockFlags) inspect(ctx context.Context) (t *opened, locker *mutex.Locker, key repo.Key, info mutex.Info, err error) {
	if t, locker, err = f.locker(ctx); err != nil {
		return
	}
	if key, err = t.key(f.Name, f.Sort); err != nil {
		return
	}
	info, err = locker.Inspect(ctx, key)
	if errors.Is(err, repo.ErrNotHeld) {
		why, problem := t.whyFree(ctx, key)
		err = cmp.Or(problem, error(outcome{exitNothing, fmt.Errorf("%w %s in table %q%s", errNobody, keyWords(key), f.Table, why)}))
	}
	return t, locker, key, info, err
}

// whyFree says why nobody may seem to hold what somebody holds; "" if nothing speaks for that.
func (t *opened) whyFree(ctx context.Context, key repo.Key) (string, error) {
	keys, item, err := t.find(ctx, key)
	if err != nil {
		return "", err
	}
	if why := t.elsewhere(keys, item); why != "" {
		return ": " + why, nil
	}
	if len(item) == 0 && t.schema != ofLocks.schema {
		return asStored(key), nil
	}
	return "", nil
}

var errNobody = errors.New("nobody holds")

// lockFacts are what is known of a lock, in words.
func lockFacts(info mutex.Info, now time.Time) [][2]string {
	d := lockDocumentOf(info, now)
	facts := [][2]string{{"lock", keyWords(info.Key)}, {"holder", shown.Holder(d.Holder, d.Handed)}, {"token", fmt.Sprint(d.Token)}, {"since", since(d.Since, now)}, {"until", ends(d.Until, d.Expired, now)}}
	if d.Until != nil && info.Lease > 0 {
		facts = append(facts, [2]string{"last sign", moment(d.Until.Add(-info.Lease), now) + ": taken or extended then, by its holder's clock"})
	}
	if n := len(d.Waiting); n > 0 {
		facts = append(facts, [2]string{"queue", fmt.Sprintf("%d wait in line (Fair), the next one first: %s; some of them may be dead, which are passed over", n, strings.Join(d.Waiting, ", "))})
	}
	if d.Payload != "" {
		facts = append(facts, [2]string{"payload", d.Payload})
	}
	return facts
}

type locksBreakCommand struct {
	lockFlags
	Token int64 `required:"" placeholder:"TOKEN" help:"Token of the hold, as list or show tell it: no other hold is ended. 0: one that was taken by hand."`
	consent
}

// Help says what it does to whom.
func (locksBreakCommand) Help() string {
	return `Shows whom it hits and until when the lock is held, asks, and ends the hold of this token and no other. A holder that is alive learns it: its context ends, and its commit or unlock is refused (ErrLockLost). Be sure that what it does beside, outside DynamoDB, may be cut off there.

Works on named locks (package mutex) and on items that pessimistic or lockedread have locked.

Exit codes: 0 broken; 1 failed, or not agreed to; 2 usage; 3 nobody holds it; 4 another token holds it by now, or its holder was quicker.`
}

// Run implements the command.
func (cmd *locksBreakCommand) Run(ctx context.Context, c *console) error {
	t, locker, key, info, err := cmd.inspect(ctx)
	if err == nil || errors.Is(err, errNobody) {
		err = cmp.Or(t.breakable(ctx, key), err)
	}
	if err != nil {
		return err
	}
	if info.Token != cmd.Token {
		return outcome{exitMoved, fmt.Errorf("token %d does not hold %s: %s does, with token %d; nothing was changed", cmd.Token, keyWords(key), shown.Holder(info.Owner, info.Handed), info.Token)}
	}
	now := time.Now()
	return c.force(ctx, cmd.Yes, cmd.Output, forced{
		facts: lockFacts(info, now), question: "Break it?", gone: "the hold ended meanwhile",
		act:  func() error { return locker.Break(ctx, key, cmd.Token) },
		done: "broken", name: fmt.Sprintf("%s, token %d", keyWords(key), cmd.Token), document: lockDocumentOf(info, now),
	})
}
