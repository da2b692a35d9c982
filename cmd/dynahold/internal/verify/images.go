package verify

import (
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// images are the changes of one item, in their order.
type images []Change

// near are the images that may have stood when something was changed elsewhere: streams
// tell times to the second, and those of the parts of one transaction may be two apart.
func (all images) near(at time.Time) (some []ddb.Item) {
	from, to := at.Add(-2*second), at.Add(2*second)
	for i, c := range all {
		if !c.Time.Before(from) && (i == 0 || !all[i-1].Time.After(to)) {
			some = append(some, c.Before)
		}
	}
	if last := len(all) - 1; last >= 0 && !all[last].Time.After(to) {
		some = append(some, all[last].After)
	}
	return some
}

// known reports whether all changes of an item are there, since its first one.
func (h *histories) known(key string) bool {
	i := h.items[key]
	return i != nil && i.whole && !i.breach
}

// histories are all changes of a table, for the rules that look at more than one item.
type histories struct {
	*Report
	items   map[string]*item
	changes map[string]images
}

// tell notes the first breach of an item, by the change that shows it.
func (h *histories) tell(rule, says string, c Change) {
	h.items[c.Key].tell(h.Report, &step{Change: c}, rule, says)
}
