package resources

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// SetLimit, Pause, Resume and Forget read nothing before they write, so a copy of one that
// comes late would put back what others have changed since. Each leaves when it was asked
// for, and demands that nothing later was. What two programs ask for at the same time is
// told apart by digits drawn at random.

// askedAt is a time in nanoseconds, the last three at random, after all of this client, by
// its clock, and after a stored one.
func (t *Table) askedAt(stored int64) int64 {
	micros := max(t.Clock().UnixMicro(), stored/1000+1)
	for {
		last := t.lastAsked.Load()
		next := max(micros, last+1)
		if last > micros+time.Minute.Microseconds() { // its clock was set back
			next = micros
		}
		if t.lastAsked.CompareAndSwap(last, next) {
			return next*1000 + rand.Int64N(1000)
		}
	}
}

// operated is what a row says of an operator's call that it has refused.
type operated int

const (
	overtakenBy  operated = iota // others have asked for something later
	isSo                         // it is as was asked for, by this call or another
	clocksDiffer                 // what is later there cannot have been asked for since
	otherwise                    // it is not the time that has refused it
)

// judgeOperated tells them. later says that the row has a later time than the call's,
// future that it is later than now.
func judgeOperated(own, wanted, later, future bool) operated {
	switch {
	case own, wanted:
		return isSo
	case future:
		return clocksDiffer
	case later:
		return overtakenBy
	}
	return otherwise
}

// how an operator's call changes the row of a resource.
type how int

const (
	updates how = iota
	removes
)

// standsIn reports whether a row is as it was before a call that is asked for at a time.
func (h how) standsIn(row ddb.Item, at int64) bool {
	asked, err := Integer(row, aAsked, math.MaxInt64)
	return err == nil && asked < at && (h == updates || len(row) > 0)
}

// operate sends an operator's call. wanted tells whether a resource is as the call wants
// it; refused is the error where it is not the time that has refused it.
func (t *Table) operate(ctx context.Context, resource string, how how, set func(*ddb.Write), wanted func(Row) bool, refused func(Row, ddb.Result) error) error {
	at := t.askedAt(0)
	for clean, tries := true, 0; ; tries++ {
		w := t.Core.NewWrite()
		set(w)
		name, own := w.Name(aAsked), w.Value(ddb.Integer(at))
		w.If("(attribute_not_exists(" + name + ") OR " + name + " < " + own + ")")
		opt := ddb.Options{Stands: func(row ddb.Item) bool { return how.standsIn(row, at) }}
		var res ddb.Result
		if how == removes {
			res = t.Core.Delete(ctx, w.Delete(Key(resource)), opt)
		} else {
			w.Set(aAsked, ddb.Integer(at))
			res = t.Write(ctx, resource, w, opt)
		}
		res.Clean = res.Clean && clean
		switch clean = res.Clean; {
		case res.Outcome != ddb.Condition:
			return Plain(resource, res)
		case how == removes && len(res.Image) == 0:
			return nil // it is gone
		}
		r, err := t.Parse(resource, res.Image)
		if err != nil {
			return err
		}
		future := r.asked > t.Clock().Add(t.Cfg.ClockSkew).UnixNano() && tries == 0 && res.Clean
		switch judgeOperated(r.asked == at, wanted(r), r.asked > at, future) {
		case isSo:
			return nil
		case otherwise:
			return refused(r, res)
		case overtakenBy:
			return Unknown(resource, nil)
		}
		at = t.askedAt(r.asked)
	}
}
