package ticket

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// Attributes of a queue's item. Those of entries are followed by the entry's
// id. They are short because every request on the item bills its whole size.
const (
	attrKey    = "queue"
	attrNext   = "next" // N, the last ticket that was drawn
	attrCount  = "n"    // N, number of entries
	attrLeft   = "left" // N, the last ticket whose owner took its entry away
	attrTicket = "w_"   // N, ticket of an entry
	attrBeat   = "b_"   // N, Unix seconds: when others may pass the entry over
	attrLease  = "l_"   // N, lease in seconds where it is not the default
	attrOwner  = "o_"   // S, "<Unix seconds> <Config.Owner>": since when, and who; only with an Owner

	// attrBroken is followed by a ticket that was taken away by force.
	attrBroken = "x_" // N, the end that its entry had, Unix seconds
)

// entry is a place in the line.
type entry struct {
	id     string
	number int64
	until  time.Time
	lease  time.Duration
	ticket types.AttributeValue // as stored
	beat   types.AttributeValue // as stored
	owner  string               // "" if it did not say
	since  time.Time            // when it came; zero if it did not say
	more   []string             // attributes that not every entry has
}

// line is what an image shows: the entries in order of service.
type line struct {
	entries []entry
	next    int64               // the last ticket that was drawn
	count   int64               // how many entries the item says that it has
	left    int64               // the last ticket whose owner took its entry away
	broken  map[int64]time.Time // the tickets that were taken away by force, with the end that they had
}

// maxTicket bounds every number of a queue: far above what microseconds and
// counting reach, and far below what a number of Go can hold.
const maxTicket = 1 << 62

// parse reads an image; one without entries, or of no item, is an empty line.
// What the protocol cannot have written is no queue: nobody goes in by it. That
// the count is not the number of entries is let pass: the entries decide.
func parse(image ddb.Item) (l line, err error) {
	for name, to := range map[string]*int64{attrNext: &l.next, attrCount: &l.count, attrLeft: &l.left} {
		if v, there := image[name]; there {
			if *to, err = whole(name, v, 0, maxTicket); err != nil {
				return line{}, err
			}
		}
	}
	if l.left > l.next {
		return line{}, schemaError(attrLeft, fmt.Errorf("%d is greater than the last ticket that was drawn, %d", l.left, l.next))
	}
	for name, v := range image {
		id, ok := strings.CutPrefix(name, attrTicket)
		if !ok {
			l.noteBroken(name, v)
			continue
		}
		e := entry{id: id, ticket: v, beat: image[attrBeat+id], lease: settings.DefaultLease}
		if e.number, err = whole(name, v, 1, l.next); err != nil {
			return line{}, err
		}
		if e.until, err = seconds(attrBeat+id, e.beat, float64(ddb.Never().Unix())); err != nil {
			return line{}, err
		}
		if named, there := image[attrLease+id]; there {
			length, err := seconds(attrLease+id, named, settings.MaxLease.Seconds())
			if err != nil {
				return line{}, err
			}
			e.lease = time.Duration(length.UnixMilli()) * time.Millisecond
			e.more = append(e.more, attrLease+id)
		}
		if v, there := image[attrOwner+id]; there {
			e.since, e.owner = stored.ParseSign(v)
			e.more = append(e.more, attrOwner+id)
		}
		l.entries = append(l.entries, e)
	}
	slices.SortFunc(l.entries, func(a, b entry) int { return cmp.Compare(a.number, b.number) })
	for i := 1; i < len(l.entries); i++ {
		if a, b := l.entries[i-1], l.entries[i]; a.number == b.number {
			return line{}, schemaError(attrTicket+a.id, fmt.Errorf("it is the ticket of %q too, %d", attrTicket+b.id, b.number))
		}
	}
	return l, nil
}

// whole reads a whole number within bounds.
func whole(name string, v types.AttributeValue, least, most int64) (int64, error) {
	n, err := ddb.Int(v)
	if err == nil && (n < least || n > most) {
		err = fmt.Errorf("it is not between %d and %d", least, most)
	}
	if err != nil {
		return 0, schemaError(name, err)
	}
	return n, nil
}

// seconds reads a number of seconds above zero.
func seconds(name string, v types.AttributeValue, most float64) (time.Time, error) {
	at, err := ddb.Time(v)
	if err != nil {
		return at, schemaError(name, err)
	}
	n, _ := v.(*types.AttributeValueMemberN) // as Time has found
	if s, err := strconv.ParseFloat(n.Value, 64); err != nil || s <= 0 || s > most {
		return at, schemaError(name, fmt.Errorf("its seconds are not between 0 and %.0f", most))
	}
	return at, nil
}

func schemaError(attr string, err error) error {
	return fmt.Errorf("%w: attribute %q: %w", repo.ErrSchema, attr, err)
}

// find returns the entry of an id.
func (l line) find(id string) (entry, bool) {
	return l.first(func(e entry) bool { return e.id == id })
}

// first returns the first entry of which something is so.
func (l line) first(is func(entry) bool) (entry, bool) {
	i := slices.IndexFunc(l.entries, is)
	if i < 0 {
		return entry{}, false
	}
	return l.entries[i], true
}

// before returns the entries ahead of a ticket; present tells whether the
// entry itself is there. An entry of the id with another number is a late copy
// of the request that drew it: not ours.
func (l line) before(id string, number int64) (ahead []entry, present bool) {
	i := slices.IndexFunc(l.entries, func(e entry) bool { return e.id == id && e.number == number })
	if i < 0 {
		return nil, false
	}
	return l.entries[:i], true
}

// leftBy judges a removal that found its entry gone: whether it was this
// removal's doing, an earlier attempt's or a copy's that the network made. The number
// that it left tells, until another is left. Before the deadline nobody else may have taken
// the entry away but by force, which leaves its evidence, or with the item: doubt says
// that there was an attempt without an answer, which may have come before that. An item
// that was made anew shows it by the number of its last ticket, or by that nobody has left it.
func (l line) leftBy(number int64, doubt, expired bool) bool {
	return l.left == number || !expired && (doubt || l.sameLife(number)) && !l.brokenTicket(number)
}

// tells reports whether a line in which an entry is gone says that others have taken it
// away: by force, or because nobody has left since who came behind it.
func (l line) tells(number int64) bool {
	return l.brokenTicket(number) || l.sameLife(number) && l.left < number
}

// sameLife reports whether a ticket is one of an item that was not made anew since.
func (l line) sameLife(number int64) bool {
	return l.left > 0 && l.next >= number && l.next-number <= lifeSpan
}

// lifeSpan is how many tickets are taken to be drawn while a removal is under way. Those of
// one life of an item follow each other, and another life begins at its microsecond.
const lifeSpan = 1_000

// judge tells which entries may be passed over.
type judge struct {
	skew      time.Duration
	clockless bool
	watched   map[string]watch // by id; clockless only
}

// watch is the evidence of a clockless watcher: an entry that stood unchanged
// for its full lease is dead, whatever any clock says.
type watch struct {
	number int64
	beat   types.AttributeValue
	since  time.Time // when the first answer that showed it so arrived
}

// shows reports whether it is about an entry as it is now.
func (w watch) shows(e entry) bool { return w.number == e.number && ddb.Equal(w.beat, e.beat) }

// see notes what an answer showed. now is a reading of the monotonic clock.
func (j *judge) see(l line, now time.Time) {
	if !j.clockless {
		return
	}
	before := j.watched
	j.watched = make(map[string]watch, len(l.entries))
	for _, e := range l.entries {
		w := before[e.id]
		if !w.shows(e) {
			w = watch{number: e.number, beat: e.beat, since: now}
		}
		j.watched[e.id] = w
	}
}

// left is how long an entry remains beyond the reach of others if it is not
// renewed; it may be passed over when this is below zero. wall is the own
// clock; mono never runs ahead of real time, so that a clock which jumps, or a
// suspended machine, can only delay a passing over.
func (j *judge) left(e entry, wall, mono time.Time) time.Duration {
	if !j.clockless {
		return e.until.Add(j.skew).Sub(wall)
	}
	w := j.watched[e.id]
	if !w.shows(e) {
		return e.lease
	}
	return w.since.Add(e.lease).Sub(mono)
}

// sort splits entries: how many are live, and how long until all could be passed
// over if none of them is renewed.
func (j *judge) sort(entries []entry, wall, mono time.Time) (live int, rest time.Duration) {
	for _, e := range entries {
		d := j.left(e, wall, mono)
		if d >= 0 {
			live++
		}
		rest = max(rest, d)
	}
	return live, rest
}
