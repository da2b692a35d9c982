package stored

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Record is what the lock attributes of an item say.
type Record struct {
	By     string    // holder's id, "" when nobody holds the item
	Until  time.Time // when others may take over; zero when absent
	Timed  bool      // Until is present
	Lease  time.Duration
	Held   int64 // token of the present hold, 0 when absent
	Token  int64 // next token to be given out, 0 when absent
	Stolen int64 // newest token whose hold somebody else ended, -1 when absent
	Stub   bool
}

// Busy reports whether the lock attributes name a holder, live or expired.
func (l Record) Busy() bool { return l.By != "" || l.Timed }

// Endless reports whether the hold does not end by itself: only its holder or
// an operator ends it.
func (l Record) Endless() bool { return l.Timed && !l.Until.Before(ddb.Never()) }

// Live reports whether the hold is not yet up for takeover.
func (l Record) Live(now time.Time, skew time.Duration) bool {
	return l.Timed && !l.Until.Add(skew).Before(now)
}

// An acquisition's id is 128 bits: 64 random ones, the Unix time in seconds at which it
// was made, so that operators learn since when a lock is held, and a sum over them and
// the owner. The time stands behind the random bits, for those are what an entry of a
// queue is known by. By the sum an id that a program by hand has made in the same form
// does not pass for one of the library, but by a chance of one in four billion. Under
// another sum an id has 96 random bits and no time: such ids were made before.
const (
	randomBytes = 12 // of these the last ones are the time
	timeAt      = 8
	idBytes     = randomBytes + crc32.Size

	timed, untimed = "dynahold@", "dynahold#" // what a sum begins with
)

// idText writes ids. Strict: two texts must not be one id.
var idText = base64.RawURLEncoding.Strict()

var idLen = idText.EncodedLen(idBytes)

// NewID is NewIDAt now.
func NewID(owner string) string { return NewIDAt(owner, time.Now()) }

// NewIDAt makes the identity of one acquisition: <owner>#<id>.
func NewIDAt(owner string, at time.Time) string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:timeAt])                              // never fails since Go 1.24
	binary.BigEndian.PutUint32(b[timeAt:], uint32(at.Unix())) //nolint:gosec // until the year 2106
	binary.BigEndian.PutUint32(b[randomBytes:], idSum(timed, owner, b[:randomBytes]))
	return owner + "#" + idText.EncodeToString(b[:])
}

// idSum binds the random part of an id to its owner. It is the IEEE checksum of the
// three; package crc32 would have them in memory of their own, for each id again.
func idSum(kind, owner string, random []byte) uint32 {
	return ^sum(sum(sum(^uint32(0), kind), owner), random)
}

func sum[T string | []byte](crc uint32, data T) uint32 {
	for i := range len(data) {
		crc = crc32.IEEETable[byte(crc)^data[i]] ^ crc>>8
	}
	return crc
}

// Asked is when the holder's id was made, on its own clock: when it asked for the
// lock, which it has had since then unless it stood in a queue first. Zero if the id
// does not tell.
func (l Record) Asked() (at time.Time) {
	_, _, at = readID(l.By)
	return at
}

// Owner is the part of an id that may be shown: the random part is left out.
func (l Record) Owner() string {
	if owner, random := SplitID(l.By); random != "" {
		return owner
	}
	return l.By
}

// SplitID parts an id of this library; random is "" for one made by hand.
func SplitID(id string) (owner, random string) {
	owner, random, _ = readID(id)
	return owner, random
}

// readID is SplitID, with the time at which the id was made; zero if it does not tell.
func readID(id string) (owner, random string, made time.Time) {
	i := strings.LastIndexByte(id, '#')
	if i < 0 {
		return id, "", made
	}
	owner, random = id[:i], id[i+1:]
	if owner == next && isEntryID(random) {
		return owner, random, made
	}
	var room [idBytes + 2]byte // what the decoder may need for a text of this length
	if len(random) != idLen {
		return id, "", made
	}
	b, err := idText.AppendDecode(room[:0], []byte(random))
	if err != nil || len(b) != idBytes {
		return id, "", made
	}
	switch binary.BigEndian.Uint32(b[randomBytes:]) {
	case idSum(timed, owner, b[:randomBytes]):
		return owner, random, time.Unix(int64(binary.BigEndian.Uint32(b[timeAt:])), 0)
	case idSum(untimed, owner, b[:randomBytes]):
		return owner, random, made
	}
	return id, "", made
}

// maxLease bounds leases read from items.
const maxLease = 24 * time.Hour

// ParseRecord reads the lock attributes of an item. An attribute of a wrong type
// or shape is a ShapeError: a text in a numeric comparison is silently false for
// ever, and a negative end lets everybody in.
func (t *Table) ParseRecord(item ddb.Item) (Record, error) {
	l := Record{Stolen: -1}
	a := &t.Attr
	by, named := item[a.LockedBy]
	if named {
		s, isText := by.(*types.AttributeValueMemberS)
		if !isText {
			return l, &ShapeError{a.LockedBy, fmt.Errorf("type %s, not the holder's id, a string", ddb.TypeName(by))}
		}
		l.By = s.Value
	}
	if v, ok := item[a.LockTime]; ok {
		var err error
		if l.Until, err = ddb.Time(v); err == nil {
			_, err = parseNumber(v)
		}
		if err != nil {
			return l, &ShapeError{a.LockTime, err}
		}
		l.Timed = true
	}
	if named && !l.Timed {
		// Whoever locks, by hand too, says until when; and whoever unlocks takes
		// both away.
		return l, &ShapeError{a.LockedBy, fmt.Errorf("it stands without %q: no lock says who and not until when", a.LockTime)}
	}
	if v, ok := item[a.LockLease]; ok {
		f, err := parseNumber(v)
		if err != nil {
			return l, &ShapeError{a.LockLease, err}
		}
		l.Lease = time.Duration(min(f, maxLease.Seconds()) * float64(time.Second))
	}
	var held, token, stolen error
	l.Held, held = parseToken(item, a.LockHeld, l.Held)
	l.Token, token = parseToken(item, a.LockToken, l.Token)
	l.Stolen, stolen = parseToken(item, a.LockStolen, l.Stolen)
	if err := cmp.Or(held, token, stolen); err != nil {
		return l, err
	}
	if v, ok := item[a.LockStub]; ok {
		if !isTrue(v) {
			return l, &ShapeError{a.LockStub, fmt.Errorf("%s, not the mark of a key that was locked before it had data (BOOL true)", describe(v))}
		}
		l.Stub = true
	}
	return l, nil
}

// parseToken reads a token; one that is not there is absent.
func parseToken(item ddb.Item, name string, absent int64) (int64, error) {
	v, ok := item[name]
	if !ok {
		return absent, nil
	}
	n, err := wholeNumber(v)
	if err != nil {
		return absent, &ShapeError{name, err}
	}
	return n, nil
}

// wholeNumber reads a token, or an epoch.
func wholeNumber(v types.AttributeValue) (int64, error) {
	n, err := ddb.Int(v)
	if err == nil && (n < 0 || n > MaxNumber) {
		err = fmt.Errorf("%d is not a number from 0 to %d", n, int64(MaxNumber))
	}
	return n, err
}
