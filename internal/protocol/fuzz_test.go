package protocol_test

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/expressions"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// core is a table whose items have the mapped attributes a to d.
var core = protocol.Of(stored.New(&stored.Table{
	Table:        &ddb.Table{Name: "t", Classify: func(err error) error { return err }, Partition: "id", Mapped: []string{"a", "b", "c", "d"}},
	AnyAttribute: true,
	Attr: stored.Attributes{LockedBy: "lockedBy", LockTime: "lockTime", LockLease: "lockLease", LockHeld: "lockHeld", LockToken: "lockToken",
		LockStolen: "lockStolen", LockStub: "lockStub", Writers: "writers", Tombstone: "tombstone", TTL: "expiresAt"},
}))

// source turns a fuzzer's bytes into values.
type source struct{ data []byte }

func (s *source) next() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

func (s *source) bytes() []byte {
	n := min(int(s.next()%8), len(s.data))
	b := s.data[:n]
	s.data = s.data[n:]
	return b
}

var numbers = []string{"0", "-0", "1", "1.0", "10e-1", "+1", "01", "-7", "1e125", "1e-130", "9223372036854775807", "9223372036854775808", "", "x", "1/2", "0x1", "NaN"}

func (s *source) number() string { return numbers[int(s.next())%len(numbers)] }

// distinct members, as DynamoDB demands of a set.
func distinct[E any](s *source, one func() E, wrap func(E) types.AttributeValue) (set []E) {
	for range s.next() % 4 {
		e := one()
		if !slices.ContainsFunc(set, func(x E) bool { return ddb.Equal(wrap(x), wrap(e)) }) {
			set = append(set, e)
		}
	}
	return set
}

func (s *source) value(depth int) types.AttributeValue {
	switch kind := s.next() % 10; {
	case kind == 0:
		return ddb.Text(string(s.bytes()))
	case kind == 1:
		return ddb.Number(s.number())
	case kind == 2:
		return ddb.Bytes(s.bytes())
	case kind == 3:
		return &types.AttributeValueMemberBOOL{Value: s.next()%2 == 0}
	case kind == 4:
		return &types.AttributeValueMemberNULL{Value: s.next()%2 == 0}
	case kind == 5:
		return &types.AttributeValueMemberSS{Value: distinct(s, func() string { return string(s.bytes()) }, ddb.Text)}
	case kind == 6:
		return &types.AttributeValueMemberNS{Value: distinct(s, s.number, ddb.Number)}
	case kind == 7:
		return &types.AttributeValueMemberBS{Value: distinct(s, s.bytes, ddb.Bytes)}
	case kind == 8 && depth > 0:
		l := &types.AttributeValueMemberL{}
		for range s.next() % 4 {
			l.Value = append(l.Value, s.value(depth-1))
		}
		return l
	case kind == 9 && depth > 0:
		return &types.AttributeValueMemberM{Value: s.item(depth - 1)}
	}
	return &types.AttributeValueMemberM{}
}

func (s *source) item(depth int) ddb.Item {
	item := ddb.Item{}
	for range s.next() % 6 {
		item[string(rune('a'+s.next()%6))] = s.value(depth)
	}
	return item
}

func FuzzEqualSizeAndDiff(f *testing.F) {
	f.Add([]byte{2, 0, 1, 3, 1, 0, 1, 0, 1, 2}, int8(1))                                   // 1.0, then 1
	f.Add([]byte{1, 0, 6, 3, 0, 2, 7, 1, 0, 6, 3, 7, 2, 0}, int8(-1))                      // sets of numbers in two orders
	f.Add([]byte{3, 0, 8, 2, 9, 2, 0, 0, 2, 'x', 'y', 1, 3, 1, 1, 5, 2, 1, 1, 1}, int8(2)) // a list with a map
	f.Fuzz(func(t *testing.T, data []byte, over int8) {
		s := &source{data}
		before, after := s.item(3), s.item(3)
		if ddb.EqualItems(before, after) != ddb.EqualItems(after, before) {
			t.Errorf("%v and %v are equal one way only", before, after)
		}
		if !ddb.EqualItems(before, before) {
			t.Errorf("%v does not equal itself", before)
		}
		d := core.Diff(before, after)
		then := maps.Clone(before)
		for _, a := range d.Set {
			then[a.Name] = a.Value
		}
		for _, name := range d.Remove {
			delete(then, name)
		}
		for _, name := range core.Mapped {
			if got, want := then[name], after[name]; (got != nil || want != nil) && !ddb.Equal(got, want) {
				t.Errorf("%s is %v after the difference %+v, want %v", name, got, d, want)
			}
		}
		// Just below, at and above the greatest size.
		const most = 409_600 - 1024
		delete(then, "f")
		before["f"] = ddb.Text(strings.Repeat("x", max(0, most-1-protocol.Size(then)+int(over))))
		then["f"] = before["f"]
		var tooLarge *ddb.SizeError
		if err := core.CheckSize(before, d); errors.As(err, &tooLarge) != (protocol.Size(then) > most) {
			t.Errorf("%d bytes: %v", protocol.Size(then), err)
		}
	})
}

func FuzzLock(f *testing.F) {
	f.Add("o#AAAAAAAAAAAAAAAAAAAAAA", "1700000000.5", "30", "8", "8", "7", uint32(0), int64(8), byte(2))
	f.Add("", "", "", "", "", "", uint32(0xfff), int64(0), byte(1))            // nothing
	f.Add("", "1e400", "-1", "", "1", "1", uint32(0x00a), int64(1), byte(2))   // by hand, without a name
	f.Add("o", "NaN", "Inf", "x", "1.5", "", uint32(0), int64(1), byte(3))     // nonsense
	f.Add("o", "5", "5", "5", "5", "5", uint32(0x555), int64(5), byte(7))      // texts for numbers
	f.Add("o", "1", "1", "9", "900000000", "2", uint32(0), int64(9), byte(15)) // another life
	f.Fuzz(func(t *testing.T, by, until, lease, held, token, stolen string, shapes uint32, mine int64, flags byte) {
		item := ddb.Item{"id": ddb.Text("p")}
		for i, a := range []struct{ name, value string }{{"lockedBy", by}, {"lockTime", until}, {"lockLease", lease},
			{"lockHeld", held}, {"lockToken", token}, {"lockStolen", stolen}} {
			switch shape := shapes >> (2 * i) % 4; {
			case shape == 0 && a.name == "lockedBy", shape == 1 && a.name != "lockedBy":
				item[a.name] = ddb.Text(a.value)
			case shape < 2:
				item[a.name] = ddb.Number(a.value)
			case shape == 2:
				item[a.name] = ddb.Bytes([]byte(a.value))
			}
		}
		l, err := core.ParseRecord(item)
		if err != nil {
			return
		}
		if l.Lease < 0 || l.Lease > 24*time.Hour || l.Until.Year() > 9999 || (l.Timed && l.Until.Unix() < 0) {
			t.Errorf("read as %+v", l)
		}
		if !strings.HasPrefix(l.By, l.Owner()) {
			t.Errorf("owner %q of %q", l.Owner(), l.By)
		}
		for _, id := range []string{by, "me#AAAAAAAAAAAAAAAAAAAAAA"} {
			for _, token := range []int64{mine, l.Held, l.Stolen, l.Token} {
				exists, clean, valid := flags&1 == 0, flags&2 == 0, flags&4 == 0
				own := exists && l.By == id && l.Held == token
				h := protocol.Holder{ID: id, Token: token}
				commit, remove := protocol.JudgeCommit(l, h, exists, clean), protocol.JudgeDelete(l, h, exists, clean, valid)
				if own && (commit == protocol.Committed || remove == protocol.Committed) || !own && (commit == protocol.Expired || remove == protocol.Expired) {
					t.Errorf("%+v, token %d of %q, own %v: commit %v, delete %v", l, token, id, own, commit, remove)
				}
				evidence := l.Stolen == token || l.Held == token || !exists || protocol.OtherLife(l, h)
				if commit == protocol.Committed && evidence || remove == protocol.Committed && exists && !protocol.OtherLife(l, h) {
					t.Errorf("%+v, token %d of %q: commit %v, delete %v", l, token, id, commit, remove)
				}
			}
		}
	})
}

func FuzzSeconds(f *testing.F) {
	f.Add(int64(1_700_000_000), int64(1), "1700000000.001")
	f.Add(int64(0), int64(999_999_999), "-1")
	f.Add(int64(253402300798), int64(999_000_000), "1e999")
	f.Add(int64(-5), int64(-5), "NaN")
	f.Fuzz(func(t *testing.T, sec, nsec int64, text string) {
		// Clocks before 1970 are not written.
		at := time.Unix(max(0, sec%253402300799), max(0, nsec%1e9))
		back, ok := ddb.ParseSeconds(ddb.Seconds(at))
		if late := back.Sub(at); !ok || late < 0 || late >= time.Millisecond {
			t.Errorf("%v is written %s and read %v, %v", at, ddb.Seconds(at), back, ok)
		}
		if at, ok := ddb.ParseSeconds(text); ok && (at.Unix() < 0 || at.UTC().Year() > 9999) {
			t.Errorf("%q is read as %v", text, at)
		}
	})
}

// FuzzRing lets others write before and after a write that was applied or not:
// the verdict may be missing, but never wrong.
func FuzzRing(f *testing.F) {
	f.Add([]byte{1, 1}, []byte{1, 1, 1}, true, []byte("12345678x"))
	f.Add([]byte{1, 0, 1}, []byte{0}, false, []byte("1234567"))
	f.Add([]byte{1}, []byte{1, 1, 1, 1, 1, 1, 1, 1}, true, make([]byte, 65))
	f.Fuzz(func(t *testing.T, before, after []byte, applied bool, foreign []byte) {
		ring := func(v types.AttributeValue) []byte { return core.Ring(ddb.Item{"writers": v}) }
		// Others have read the item, or not (an event write: even bytes).
		write := func(now, others []byte) []byte {
			for _, o := range others[:min(len(others), 20)] {
				if o%2 == 0 {
					now = nil
				}
				now = ring(protocol.NewWriteID().Push(now))
			}
			return now
		}
		base, id := write(ring(ddb.Bytes(foreign)), before), protocol.NewWriteID()
		now := base
		if applied {
			now = ring(id.Push(base))
		}
		if applied && protocol.RingVerdict(id, base, now) != protocol.Committed {
			t.Errorf("own id in sight of %x is not enough", now)
		}
		now = write(now, after)
		if v := protocol.RingVerdict(id, base, now); len(now)%8 != 0 || len(now) > 64 && len(after) > 0 || (applied && v == protocol.Lost) || (!applied && v == protocol.Committed) {
			t.Errorf("base %x, now %x, id %x, applied %v: verdict %v", base, now, id, applied, v)
		}
	})
}

var placeholder = regexp.MustCompile(`[#:][0-9a-z]+`)

// FuzzMerge joins users' updates with writes of the library's own: every
// attribute that is changed is shown to the guard, every one on which the update builds
// is told, and every placeholder has one meaning.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte{4, 0, 4, 8, 5, 1, 6, 2})
	f.Add([]byte{0, 0, 4, 4, 0, 5})
	names := []string{"a", "b.c", "l[0]", "m.n[2].o", "lockedBy", "with space", "#0", ":0"}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &source{data}
		var update expression.UpdateBuilder
		var want, read []string
		nested := false
		for range min(len(data)/2, 12) {
			verb, at := s.next()%7, s.next()%8
			name := expression.Name(names[at])
			top := strings.FieldsFunc(names[at], func(r rune) bool { return r == '.' || r == '[' })[0]
			want = append(want, top)
			if verb != 0 && verb != 4 {
				read = append(read, top)
			}
			nested = nested || strings.Contains(names[at], ".")
			switch verb {
			case 0:
				update = update.Set(name, expression.Value(1))
			case 1:
				update = update.Set(name, expression.Plus(expression.IfNotExists(name, expression.Value("x, y")), expression.Value(2)))
			case 2:
				update = update.Set(name, expression.ListAppend(name, expression.Value([]string{"(", ","})))
			case 3:
				update = update.Set(name, expression.Name("other").Minus(name))
			case 4:
				update = update.Remove(name)
			case 5:
				update = update.Add(name, expression.Value(1))
			default:
				update = update.Delete(name, expression.Value(&types.AttributeValueMemberSS{Value: []string{"x"}}))
			}
		}
		w := core.NewWrite()
		w.Set("version", ddb.Number("1"))
		var shown []string
		built, err := expressions.Build(core, update, nil)
		var reads []string
		if err == nil {
			reads, err = built.Merge(w, func(attr string) error { shown = append(shown, attr); return nil })
		}
		if err != nil {
			if len(want) > 0 {
				t.Error(err)
			}
			return
		}
		w.IfUnlocked()
		slices.Sort(want)
		slices.Sort(shown)
		if !slices.Equal(want, shown) {
			t.Errorf("changed %q, shown %q", want, shown)
		}
		if slices.ContainsFunc(read, func(name string) bool { return !slices.Contains(reads, name) }) || len(read) == 0 && !nested && len(reads) > 0 {
			t.Errorf("builds on %q, told %q", read, reads)
		}
		in, err := w.Update(nil)
		if err != nil {
			return // too long
		}
		used := map[string]bool{}
		for _, p := range placeholder.FindAllString(*in.UpdateExpression+" "+*in.ConditionExpression, -1) {
			used[p] = true
			if in.ExpressionAttributeNames[p] == "" && in.ExpressionAttributeValues[p] == nil {
				t.Errorf("%s means nothing in %s", p, *in.UpdateExpression)
			}
		}
		if n := len(in.ExpressionAttributeNames) + len(in.ExpressionAttributeValues); n != len(used) {
			t.Errorf("%d placeholders are used, %d have a meaning", len(used), n)
		}
	})
}
