package protocol

import (
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

// An acquisition's id is 128 bits: 96 random ones, and a sum over them and the
// owner. By the sum an id that a program by hand has made in the same form does
// not pass for one of the library, but by a chance of one in four billion.
const (
	randomBytes = 12
	idBytes     = randomBytes + crc32.Size
)

// idText writes ids. Strict: two texts must not be one id.
var idText = base64.RawURLEncoding.Strict()

var idLen = idText.EncodedLen(idBytes)

// NewID makes the identity of one acquisition: <owner>#<id>.
func NewID(owner string) string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:randomBytes]) // never fails since Go 1.24
	binary.BigEndian.PutUint32(b[randomBytes:], idSum(owner, b[:randomBytes]))
	return owner + "#" + idText.EncodeToString(b[:])
}

// idSum binds the random part of an id to its owner.
func idSum(owner string, random []byte) uint32 {
	var room [64]byte // most owners need no more: nothing is allocated
	return crc32.ChecksumIEEE(append(append(append(room[:0], "dynahold#"...), owner...), random...))
}

// Owner is the part of an id that may be shown: the random part is left out.
func (l Record) Owner() string {
	if owner, random := splitID(l.By); random != "" {
		return owner
	}
	return l.By
}

// splitID parts an id of this library; random is "" for one made by hand.
func splitID(id string) (owner, random string) {
	i := strings.LastIndexByte(id, '#')
	if i < 0 {
		return id, ""
	}
	owner, random = id[:i], id[i+1:]
	if owner == next && isEntryID(random) {
		return owner, random
	}
	var room [idBytes + 2]byte // what the decoder may need for a text of this length
	if len(random) != idLen {
		return id, ""
	}
	b, err := idText.AppendDecode(room[:0], []byte(random))
	if err != nil || len(b) != idBytes || binary.BigEndian.Uint32(b[randomBytes:]) != idSum(owner, b[:randomBytes]) {
		return id, ""
	}
	return owner, random
}

// maxLease bounds leases read from items.
const maxLease = 24 * time.Hour

// ParseRecord reads the lock attributes of an item. An attribute of a wrong type
// or shape is a ShapeError: a text in a numeric comparison is silently false for
// ever, and a negative end lets everybody in.
func (c *Core) ParseRecord(item ddb.Item) (Record, error) {
	l := Record{Stolen: -1}
	a := &c.Attr
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
	for _, t := range []struct {
		name string
		to   *int64
	}{{a.LockHeld, &l.Held}, {a.LockToken, &l.Token}, {a.LockStolen, &l.Stolen}} {
		v, ok := item[t.name]
		if !ok {
			continue
		}
		n, err := ddb.Int(v)
		if err == nil && (n < 0 || n > maxNumber) {
			err = fmt.Errorf("%d is not a number from 0 to %d", n, int64(maxNumber))
		}
		if err != nil {
			return l, &ShapeError{t.name, err}
		}
		*t.to = n
	}
	if v, ok := item[a.LockStub]; ok {
		if !isTrue(v) {
			return l, &ShapeError{a.LockStub, fmt.Errorf("%s, not the mark of a key that was locked before it had data (BOOL true)", describe(v))}
		}
		l.Stub = true
	}
	return l, nil
}
