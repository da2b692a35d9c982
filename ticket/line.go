package ticket

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/hold"
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
)

// entry is a place in the line.
type entry struct {
	id     string
	number int64
	until  time.Time
	lease  time.Duration
	ticket types.AttributeValue // as stored
	beat   types.AttributeValue // as stored
	named  bool                 // the lease is stored
}

// line is what an image shows: the entries in order of service.
type line struct {
	entries []entry
	left    int64 // the last ticket whose owner took its entry away
}

// parse reads an image; one without entries, or of no item, is an empty line.
func parse(image ddb.Item) (l line, err error) {
	for name, v := range image {
		id, ok := strings.CutPrefix(name, attrTicket)
		if !ok {
			continue
		}
		e := entry{id: id, ticket: v, beat: image[attrBeat+id], lease: hold.DefaultLease}
		if e.number, err = ddb.Int(v); err != nil {
			return l, misfit(name, err)
		}
		if e.until, err = ddb.Time(e.beat); err != nil {
			return l, misfit(attrBeat+id, err)
		}
		if named, there := image[attrLease+id]; there {
			length, err := ddb.Time(named)
			if err != nil {
				return l, misfit(attrLease+id, err)
			}
			e.lease, e.named = time.Duration(min(length.UnixMilli(), maxLease.Milliseconds()))*time.Millisecond, true
		}
		l.entries = append(l.entries, e)
	}
	if v, there := image[attrLeft]; there {
		if l.left, err = ddb.Int(v); err != nil {
			return l, misfit(attrLeft, err)
		}
	}
	slices.SortFunc(l.entries, func(a, b entry) int {
		if a.number != b.number { // only one item's tickets: they never overflow a difference
			return int(max(-1, min(1, a.number-b.number)))
		}
		return strings.Compare(a.id, b.id)
	})
	return l, nil
}

// maxLease bounds what is believed of a stored lease.
const maxLease = 24 * time.Hour

func misfit(attr string, err error) error {
	return fmt.Errorf("%w: attribute %q: %w", repo.ErrSchema, attr, err)
}

// find returns the entry of an id.
func (l line) find(id string) (entry, bool) {
	i := slices.IndexFunc(l.entries, func(e entry) bool { return e.id == id })
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
// removal's doing, an earlier attempt's or a copy's. doubt says that there was
// an attempt without an answer; before the deadline nobody else may have taken
// the entry away. Where a proxy sent the request twice, the number that it left
// tells.
func (l line) leftBy(number int64, doubt, expired bool) bool {
	return l.left == number || (doubt && !expired)
}

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

// see notes what an answer showed. now is a reading of the monotonic clock.
func (j *judge) see(l line, now time.Time) {
	if !j.clockless {
		return
	}
	before := j.watched
	j.watched = make(map[string]watch, len(l.entries))
	for _, e := range l.entries {
		w, ok := before[e.id]
		if !ok || w.number != e.number || !ddb.Equal(w.beat, e.beat) {
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
	w, ok := j.watched[e.id]
	if !ok || w.number != e.number || !ddb.Equal(w.beat, e.beat) {
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
