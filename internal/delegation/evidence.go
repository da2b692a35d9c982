package delegation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// Evidence is what an item says of commands that one process carries out for others:
// who leads, where mail is put, and which mail was the last of each sender that was
// served. It is written with the change itself, so it is the evidence of that.
type Evidence struct {
	Life   string // random: an item that was deleted and made anew has another
	Lead   string // who leads; "": nobody
	Shards int    // partitions over which mail is spread
	Rows   bool   // the leader answers into the rows of the mail, too
	Slots  map[string]Served
}

// Served is the last mail of a slot that was served.
type Served struct {
	Seq     int64
	At      int64 // version of the item that the write has left: which are the oldest
	Answers []string
}

// The members of the attribute.
const (
	dLife, dLead, dShards, dRows, dSlots = "life", "lead", "shards", "rows", "slots"
)

// MostShards bounds over how many partitions mail is spread.
const MostShards = 64

// Of reads it; the zero value where the item says nothing.
func Of(t *stored.Table, item ddb.Item) (d Evidence, err error) {
	v, there := item[t.Delegated]
	if !there {
		return d, nil
	}
	if d, err = parse(v); err != nil {
		return Evidence{}, t.Classify(&stored.ShapeError{Attribute: t.Delegated, Err: err})
	}
	return d, nil
}

func parse(v types.AttributeValue) (d Evidence, err error) {
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok {
		return d, fmt.Errorf("type %s, not what delegated commands leave (a map)", ddb.TypeName(v))
	}
	life, isLife := m.Value[dLife].(*types.AttributeValueMemberS)
	shards, err := ddb.Int(m.Value[dShards])
	slots, isSlots := m.Value[dSlots].(*types.AttributeValueMemberM)
	if !isLife || life.Value == "" || err != nil || shards < 1 || shards > MostShards || !isSlots {
		return d, fmt.Errorf("it has no %s, no %s, or no %s from 1 to %d", dLife, dSlots, dShards, MostShards)
	}
	d = Evidence{Life: life.Value, Shards: int(shards), Rows: ddb.Equal(m.Value[dRows], ddb.True()), Slots: make(map[string]Served, len(slots.Value))}
	if lead, ok := m.Value[dLead].(*types.AttributeValueMemberS); ok {
		d.Lead = lead.Value
	}
	for slot, v := range slots.Value {
		if d.Slots[slot], err = parseServed(v); err != nil {
			return d, fmt.Errorf("slot %q: %w", slot, err)
		}
	}
	return d, nil
}

// parseServed reads a list: number and version in one text, and the answers.
func parseServed(v types.AttributeValue) (s Served, err error) {
	texts, ok := Texts(v)
	if !ok || len(texts) == 0 {
		return s, fmt.Errorf("type %s, not a list of texts", ddb.TypeName(v))
	}
	seq, at, _ := strings.Cut(texts[0], " ")
	if s.Seq, err = strconv.ParseInt(seq, 10, 64); err == nil {
		s.At, err = strconv.ParseInt(at, 10, 64)
	}
	if err != nil || s.Seq < 1 {
		return s, fmt.Errorf("%q is not a number of mail and a version", texts[0])
	}
	s.Answers = texts[1:]
	return s, nil
}

func (s Served) head() string {
	return strconv.FormatInt(s.Seq, 10) + " " + strconv.FormatInt(s.At, 10)
}

// Texts reads a list of strings.
func Texts(v types.AttributeValue) (texts []string, ok bool) {
	l, ok := v.(*types.AttributeValueMemberL)
	if !ok {
		return nil, false
	}
	for _, e := range l.Value {
		s, ok := e.(*types.AttributeValueMemberS)
		if !ok {
			return nil, false
		}
		texts = append(texts, s.Value)
	}
	return texts, true
}

// TextList is the opposite of Texts.
func TextList(texts []string) types.AttributeValue {
	l := &types.AttributeValueMemberL{Value: make([]types.AttributeValue, len(texts))}
	for i, text := range texts {
		l.Value[i] = ddb.Text(text)
	}
	return l
}

// Value is the attribute that says it.
func (d Evidence) Value() types.AttributeValue {
	slots := make(map[string]types.AttributeValue, len(d.Slots))
	for slot, s := range d.Slots {
		slots[slot] = TextList(append([]string{s.head()}, s.Answers...))
	}
	m := map[string]types.AttributeValue{
		dLife: ddb.Text(d.Life), dShards: ddb.Integer(int64(d.Shards)), dSlots: &types.AttributeValueMemberM{Value: slots},
	}
	if d.Lead != "" {
		m[dLead] = ddb.Text(d.Lead)
	}
	if d.Rows {
		m[dRows] = ddb.True()
	}
	return &types.AttributeValueMemberM{Value: m}
}

// Bytes is about what a served mail takes of the item.
func (s Served) Bytes(slot string) int {
	n := len(slot) + 1 + 3 + 1 + len(s.head())
	for _, a := range s.Answers {
		n += 1 + len(a)
	}
	return n
}

// Size is about what all served mail takes of the item.
func (d Evidence) Size() (n int) {
	for slot, s := range d.Slots {
		n += s.Bytes(slot)
	}
	return n
}

// Oldest are the slots, those first that were served first.
func (d Evidence) Oldest() []string {
	return slices.SortedFunc(maps.Keys(d.Slots), func(a, b string) int {
		switch x, y := d.Slots[a].At, d.Slots[b].At; {
		case x < y, x == y && a < b:
			return -1
		case x > y, a > b:
			return 1
		}
		return 0
	})
}
