package mutex

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Info is what a row tells of its lock.
type Info struct {
	Key     repo.Key
	Owner   string        // without the random part of the id
	Token   int64         // of the hold; Break takes it
	Lost    int64         // no hold with a greater token was ended by somebody else (takeover, Break). It is the newest token that was; if none was, one below the row's first, which nobody had. 0: the row does not tell
	Mode    Mode          // of the hold
	Until   time.Time     // when others may take over, on the holder's clock; zero for a fail-closed hold
	Lease   time.Duration // 0 for a fail-closed hold
	Since   time.Time     // when the holder took it, on its own clock, in seconds; zero if it was taken without this library
	Payload []byte
	Handed  bool     // it was handed over to the first who waited: Owner does not name it; of a fail-closed lock until that one has answered
	Waiting []string // those who wait in the queue, in the order of service, each under a short id
}

// Expired reports whether others may take over, by a clock.
func (i Info) Expired(now time.Time) bool { return i.Mode == FailOpen && i.Until.Before(now) }

// Inspect tells who holds the lock of a name, or held it and did not release it.
// ErrNotHeld if nobody does. One request, one read unit per 4 KB.
func (l *Locker) Inspect(ctx context.Context, name any) (Info, error) {
	key, raw, err := l.key(name)
	if err != nil {
		return Info{}, err
	}
	row, err := l.taker.Core.Get(ctx, raw)
	if err != nil {
		return Info{}, err
	}
	if row[l.taker.Core.Attr.LockTime] == nil {
		return Info{}, fmt.Errorf("%w: lock %v", repo.ErrNotHeld, key)
	}
	return l.info(row)
}

// List iterates over all locks that are held, or were held and not released,
// in no order. It scans the whole table with consistent reads: one request and
// one read unit per 4 KB, up to 1 MB each. A request that fails ends the
// iteration. A row that cannot be read does not: after all locks a last error
// (ErrSchema) names such rows, up to ten, without an Info.
func (l *Locker) List(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		core := l.taker.Core
		consistent, held := true, "attribute_exists(#by)"
		in := &dynamodb.ScanInput{TableName: &core.Name, ConsistentRead: &consistent,
			FilterExpression: &held, ExpressionAttributeNames: map[string]string{"#by": core.Attr.LockedBy}}
		page := func(ctx context.Context, start ddb.Item, o func(*dynamodb.Options)) (any, error) {
			in.ExclusiveStartKey = start
			return l.client.Scan(ctx, in, o)
		}
		var unread unreadable
		for row, err := range core.Pages(ctx, "Scan", ddb.Options{}, ddb.Asked{}, page) {
			if err != nil {
				yield(Info{}, err)
				return
			}
			info, err := l.info(row)
			switch {
			case err != nil:
				unread.add(err)
			case !yield(info, nil):
				return
			}
		}
		if err := unread.error(); err != nil {
			yield(Info{}, err)
		}
	}
}

// unreadable are the rows that are no locks of ours, though they look so.
type unreadable struct {
	first []error // at most maxUnread
	all   int
}

const maxUnread = 10

func (u *unreadable) add(err error) {
	if u.all++; len(u.first) < maxUnread {
		u.first = append(u.first, err)
	}
}

func (u *unreadable) error() error {
	err := errors.Join(u.first...)
	if more := u.all - len(u.first); more > 0 {
		err = fmt.Errorf("%w\nand %d more rows that cannot be read", err, more)
	}
	return err
}

func (l *Locker) info(row ddb.Item) (Info, error) {
	info := Info{Key: l.table.DecodeKey(row), Payload: payloadOf(row, l.cfg.Payload)}
	lock, err := l.taker.Core.ParseRecord(row)
	if err != nil {
		return info, fmt.Errorf("%w: lock %v: %w", repo.ErrSchema, info.Key, err)
	}
	info.Waiting, info.Handed = l.taker.Core.Waiting(row), lock.Handed()
	info.Owner, info.Token, info.Lost, info.Since = lock.Owner(), lock.Held, max(lock.Stolen, 0), lock.Asked()
	if !lock.Endless() {
		info.Mode, info.Until, info.Lease = FailOpen, lock.Until, lock.Lease
	}
	return info, nil
}
