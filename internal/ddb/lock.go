package ddb

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Lock is what the lock attributes of an item say.
type Lock struct {
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
func (l Lock) Busy() bool { return l.By != "" || l.Timed }

// Endless reports whether the hold does not end by itself: only its holder or
// an operator ends it.
func (l Lock) Endless() bool { return l.Timed && !l.Until.Before(Never()) }

// Live reports whether the hold is not yet up for takeover.
func (l Lock) Live(now time.Time, skew time.Duration) bool {
	return l.Timed && !l.Until.Add(skew).Before(now)
}

// idBytes is the length of an acquisition's random id: 128 bits.
const idBytes = 16

var idLen = base64.RawURLEncoding.EncodedLen(idBytes)

// NewID makes the identity of one acquisition: <owner>#<random id>.
func NewID(owner string) string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return owner + "#" + base64.RawURLEncoding.EncodeToString(b[:])
}

// Owner is the part of an id that may be shown: the random part is left out.
func (l Lock) Owner() string {
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
	n := len(id) - i - 1
	if n == idLen || n == entryLen && id[:i] == next {
		return id[:i], id[i+1:]
	}
	return id, ""
}

// maxLease bounds leases read from items.
const maxLease = 24 * time.Hour

// ParseLock reads the lock attributes of an item. An attribute of a wrong type
// is an error: a text in a numeric comparison is silently false for ever.
func (c *Core) ParseLock(item Item) (Lock, error) {
	l := Lock{Stolen: -1}
	a := &c.Attr
	if v, ok := item[a.LockedBy]; ok {
		s, isText := v.(*types.AttributeValueMemberS)
		if !isText {
			return l, fmt.Errorf("attribute %q is of type %s, not a string", a.LockedBy, TypeName(v))
		}
		l.By = s.Value
	}
	if v, ok := item[a.LockTime]; ok {
		var err error
		if l.Until, err = Time(v); err != nil {
			return l, fmt.Errorf("attribute %q: %w", a.LockTime, err)
		}
		l.Timed = true
	}
	if v, ok := item[a.LockLease]; ok {
		n, isNumber := v.(*types.AttributeValueMemberN)
		if !isNumber {
			return l, fmt.Errorf("attribute %q is of type %s, not a number of seconds", a.LockLease, TypeName(v))
		}
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil {
			return l, fmt.Errorf("attribute %q: %w", a.LockLease, err)
		}
		l.Lease = time.Duration(max(0, min(f, maxLease.Seconds())) * float64(time.Second))
	}
	for _, t := range []struct {
		name string
		to   *int64
	}{{a.LockHeld, &l.Held}, {a.LockToken, &l.Token}, {a.LockStolen, &l.Stolen}} {
		v, ok := item[t.name]
		if !ok {
			continue
		}
		n, err := Int(v)
		if err != nil {
			return l, fmt.Errorf("attribute %q: %w", t.name, err)
		}
		*t.to = n
	}
	_, l.Stub = item[a.LockStub]
	return l, nil
}
