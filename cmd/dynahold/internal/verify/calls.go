package verify

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/history"
)

// Calls compares what callers were told, by their programs' own records, with what the
// changes say was done. Of items of which changes are missing it says nothing.
func (w *Writes) Calls(r *Report, calls []history.Call) {
	for _, c := range calls {
		r.Calls++
		for _, rule := range []struct {
			name string
			ask  func(*Writes, history.Call) (history.Write, string)
		}{{RuleVerdict, (*Writes).verdict}, {RuleTwice, (*Writes).twice}, {RuleWhole, (*Writes).whole}} {
			if of, says := rule.ask(w, c); says != "" {
				r.Breaches = append(r.Breaches, Breach{Rule: rule.name, Table: of.Table, Item: w.nameOf(of), Time: c.Began, Says: c.Call + " " + says})
				break
			}
		}
	}
}

// verdict: what was refused is not there, and what was answered is.
func (w *Writes) verdict(c history.Call) (history.Write, string) {
	for _, one := range c.Writes {
		switch there, known := w.there(c, one); {
		case c.Verdict == history.Refused && there:
			return one, fmt.Sprintf("was told that nothing was written (%s), and its write %s is there", c.Error, one.ID)
		case c.Verdict == history.Done && one.Answer == history.Applied && known && !there:
			return one, fmt.Sprintf("was told that it is done, and its write %s is not there", one.ID)
		}
	}
	return history.Write{}, ""
}

// twice: one call changes an item once.
func (w *Writes) twice(c history.Call) (history.Write, string) {
	applied := map[string]string{}
	for _, one := range c.Writes {
		if there, _ := w.there(c, one); !there {
			continue
		}
		before, some := applied[one.Key]
		if some && before != one.ID {
			return one, fmt.Sprintf("was applied twice, as %s and %s", before, one.ID)
		}
		applied[one.Key] = one.ID
	}
	return history.Write{}, ""
}

// whole: the writes of one transaction, which share an id, are all there or none is.
func (w *Writes) whole(c history.Call) (history.Write, string) {
	applied := map[string]bool{}
	for _, one := range c.Writes {
		if there, _ := w.there(c, one); there {
			applied[one.ID] = true
		}
	}
	for _, one := range c.Writes {
		if there, known := w.there(c, one); applied[one.ID] && known && !there {
			return one, fmt.Sprintf("has written other items with %s, and not this one", one.ID)
		}
	}
	return history.Write{}, ""
}

// there reports whether a write of a call is among the changes, and whether it would be:
// whether all changes of its item are known, from before the call until after it.
func (w *Writes) there(c history.Call, one history.Write) (there, known bool) {
	i := w.items[one.Key]
	if i == nil || one.Table != w.table {
		return false, false
	}
	id, err := hex.DecodeString(one.ID)
	if err != nil || mark(id) {
		return false, false
	}
	// A stream tells times to the second.
	known = i.whole && !c.Began.Before(i.from.Add(time.Second)) && c.Ended.Before(w.to.Add(-time.Second))
	return i.touched[string(id)], known
}

// nameOf is the item of a write as the changes name it.
func (w *Writes) nameOf(of history.Write) string {
	if i := w.items[of.Key]; i != nil {
		return i.name
	}
	return of.Key
}
