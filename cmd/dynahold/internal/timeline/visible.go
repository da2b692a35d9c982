package timeline

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// visible is the timeline with texts that can be seen. Others have written them: a control
// character would be a command to some program, and turned text would be read as another.
func (t Timeline) visible() Timeline {
	t.Tables, t.Locks = slices.Clone(t.Tables), slices.Clone(t.Locks)
	for i := range t.Tables {
		t.Tables[i].Name = visible(t.Tables[i].Name)
	}
	for i := range t.Locks {
		l := &t.Locks[i]
		l.Table, l.Name, l.Sort = visible(l.Table), visible(l.Name), visible(l.Sort)
		l.Holds = slices.Clone(l.Holds)
		for j := range l.Holds {
			h := &l.Holds[j]
			h.Holder, h.Next, h.Payload = visible(h.Holder), visible(h.Next), visible(h.Payload)
		}
	}
	return t
}

func visible(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
