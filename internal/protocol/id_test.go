package protocol_test

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// parsed is a lock with all that the library writes, under some holder's id.
func parsed(t *testing.T, by string, but ...string) stored.Record {
	t.Helper()
	item := ddb.Item{"lockedBy": ddb.Text(by), "lockTime": ddb.Number("1700000000"), "lockLease": ddb.Number("30"),
		"lockHeld": ddb.Number("100"), "lockToken": ddb.Number("101"), "lockStolen": ddb.Number("99")}
	for _, name := range but {
		delete(item, name)
	}
	l, err := core.ParseRecord(item)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Any id whose last part had the right length passed for one of the library, and
// with it the lease that the holder before had left on the item.
func TestIDsMadeByHand(t *testing.T) {
	ours := stored.NewID("host/1")
	if l := parsed(t, ours); l.ByHand() || l.Owner() != "host/1" || len(stored.EntryOf(ours)) != 4 {
		t.Errorf("%q: by hand %v, owner %q, entry %q", ours, l.ByHand(), l.Owner(), stored.EntryOf(ours))
	}
	for _, owner := range []string{"", "a#b", strings.Repeat("x", 256)} {
		if l := parsed(t, stored.NewID(owner)); l.ByHand() || l.Owner() != owner {
			t.Errorf("of %q: by hand %v, owner %q", owner, l.ByHand(), l.Owner())
		}
	}
	last := ours[:len(ours)-1]
	for _, by := range []string{
		"host", "host#", "#", "",
		"host#AAAAAAAAAAAAAAAAAAAAAA",
		"host#abcdefghijklmnopqrstuv",                      // as long as ours
		"host#a.b!c d/e+f=ghijklmno",                       // no base64url
		"next#hello!", "next#AAAAAB", "host#" + ours[7:13], // as long as an entry's
		"other" + ours[4:],                      // another's id under one's own name
		last, ours + "A", strings.ToUpper(ours), // not what was written
		strings.Replace(ours, "#", "-", 1),
	} {
		l := parsed(t, by)
		if !l.ByHand() || l.Handed() || l.Owner() != by || stored.EntryOf(by) != "" {
			t.Errorf("%q: by hand %v, handed %v, owner %q, entry %q", by, l.ByHand(), l.Handed(), l.Owner(), stored.EntryOf(by))
		}
	}
	// An id of the library's without all that it writes beside it proves nothing.
	for _, missing := range []string{"lockLease", "lockHeld", "lockToken"} {
		if !parsed(t, ours, missing).ByHand() || parsed(t, stored.NextID(stored.EntryOf(ours)), missing).Handed() {
			t.Errorf("without %s it is taken for the library's", missing)
		}
	}
	if l := parsed(t, stored.NextID(stored.EntryOf(ours))); !l.Handed() || l.ByHand() {
		t.Error("a hold that was handed over is not known")
	}
}

// An id tells when it was made. Those of before did not, and are ours as well: here is
// one, with its 96 random bits and their sum under the owner.
func TestIDsTellWhenTheyWereMade(t *testing.T) {
	from := time.Now().Truncate(time.Second)
	if at := parsed(t, stored.NewID("host")).Asked(); at.Before(from) || at.After(time.Now()) {
		t.Errorf("made at %v, not now", at)
	}
	random := []byte("twelve bytes")
	old := "host#" + base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(random, crc32.ChecksumIEEE([]byte("dynahold#host"+string(random)))))
	if l := parsed(t, old); l.ByHand() || l.Owner() != "host" || !l.Asked().IsZero() {
		t.Errorf("an id of before: by hand %v, owner %q, made at %v", l.ByHand(), l.Owner(), l.Asked())
	}
	if at := parsed(t, "by hand").Asked(); !at.IsZero() {
		t.Errorf("an id made by hand: %v", at)
	}
}

// What is no ring is no evidence.
func TestBytesThatAreNoRing(t *testing.T) {
	id := protocol.NewWriteID()
	ring := id.Push(nil).(*types.AttributeValueMemberB).Value
	for name, v := range map[string]types.AttributeValue{
		"too long by three": ddb.Bytes(append(ring[:8:8], 1, 2, 3)), "longer than any": ddb.Bytes(append(ring[:8:8], make([]byte, 64)...)),
		"empty": ddb.Bytes(nil), "text": ddb.Text(string(ring)), "set": &types.AttributeValueMemberBS{Value: [][]byte{ring}},
	} {
		item := ddb.Item{"id": ddb.Text("p"), "writers": v}
		if core.CheckShape(item) == nil || protocol.RingVerdict(id, nil, core.Ring(item)) != protocol.Undecided {
			t.Errorf("%s passes for a ring", name)
		}
	}
	for n := range 10 {
		item := ddb.Item{"writers": id.Push(ring)}
		if err := core.CheckShape(item); err != nil {
			t.Errorf("a ring after %d writes: %v", n, err)
		}
		ring = core.Ring(item)
	}
}
