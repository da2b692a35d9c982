package timeline

import (
	"slices"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
)

// visible is the timeline with texts that can be seen.
func (t Timeline) visible() Timeline {
	t.Tables, t.Locks = slices.Clone(t.Tables), slices.Clone(t.Locks)
	for i := range t.Tables {
		t.Tables[i].Name = shown.Text(t.Tables[i].Name)
	}
	for i := range t.Locks {
		l := &t.Locks[i]
		l.Table, l.Name, l.Sort = shown.Text(l.Table), shown.Text(l.Name), shown.Text(l.Sort)
		l.Holds = slices.Clone(l.Holds)
		for j := range l.Holds {
			h := &l.Holds[j]
			h.Holder, h.Next, h.Payload = shown.Text(h.Holder), shown.Text(h.Next), shown.Text(h.Payload)
		}
	}
	return t
}
