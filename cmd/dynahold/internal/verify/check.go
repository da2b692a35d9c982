package verify

import (
	"time"

	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/repo"
)

// Config says what is known beside the changes.
type Config struct {
	Version string        // attribute that counts the writes of an item
	Skew    time.Duration // by which the clocks of programs may differ
	Foreign bool          // writers that do not follow the protocol are allowed, and counted
}

// Check judges the changes of one table, in whatever order they come.
func Check(of *repo.KeyTable, cfg Config, changes []Change) (*Report, *Writes) {
	table := link.Table(of)
	r, w := &Report{Breaches: []Breach{}}, &Writes{items: map[string]*item{}, table: of.Name()}
	all := &histories{r, w.items, map[string]images{}}
	var at *item
	for _, c := range order(changes) {
		if at = w.items[c.Key]; at == nil {
			at = newItem(c)
			w.items[c.Key] = at
			r.Items++
		}
		r.Changes++
		if c.Time.After(w.to) {
			w.to = c.Time
		}
		all.changes[c.Key] = append(all.changes[c.Key], c)
		at.judge(r, &step{Change: c, item: at, table: table, cfg: &cfg})
	}
	if table.Partition != noName {
		all.unique(table)
		all.moved(table)
	}
	return r, w
}

// judge asks the rules of a change, and takes it over.
func (i *item) judge(r *Report, s *step) {
	if i.known && !same(i.last, s.Before) {
		r.Gaps++
		i.whole = false
		i.begin() // what happened in between is not known
	}
	i.last, i.known = s.After, true
	if err := s.read(); err != nil {
		i.tell(r, s, RuleRight, "it has what is not the library's: "+err.Error())
		return
	}
	if len(s.Before) == 0 {
		i.begin()
	}
	for _, rule := range rules {
		if i.breach {
			break
		}
		if says := rule.ask(s); says != "" {
			i.tell(r, s, rule.name, says)
		}
	}
	i.take(r, s)
}

// tell notes the first breach of an item.
func (i *item) tell(r *Report, s *step, rule, says string) {
	if i.breach {
		return
	}
	i.breach = true
	r.Breaches = append(r.Breaches, Breach{Rule: rule, Table: s.Table, Item: s.Name, Sequence: s.Sequence, Time: s.Time, Says: says})
}

// take remembers what later changes are judged by.
func (i *item) take(r *Report, s *step) {
	for _, id := range s.ids {
		i.seen[string(id)] = true
		i.touched[string(id)] = true
	}
	if s.wrote() {
		r.Writes++
	}
	if s.foreign {
		r.Foreign++
	}
	if s.begins() {
		r.Holds++
		i.held = s.is.Held
	}
	if s.changed(s.isLock) || len(s.Before) == 0 {
		i.locked = s.Time
	}
	s.remember()
}

// Writes are the ids of writes that were found on items, for the records of clients.
type Writes struct {
	table string
	items map[string]*item
	to    time.Time // of the last change
}
