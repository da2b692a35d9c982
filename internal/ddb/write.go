package ddb

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// SizeError says that a write is too large for DynamoDB.
type SizeError struct{ Text string }

func (e *SizeError) Error() string { return e.Text }

// Write builds one conditional write. Names and values always travel as
// placeholders, never in the text of an expression.
type Write struct {
	table  *Table
	names  map[string]string // placeholder -> attribute
	known  []string          // attributes in the order of their placeholders
	values Item
	set    list
	remove list
	add    list
	del    list // of a merged expression only
	cond   list
	// Where the lists begin, to spare their growing.
	room struct {
		known             [8]string
		set, remove, cond [96]byte
	}
}

// list is the text of a section of an expression, or of a condition.
type list []byte

func (l *list) append(between string, parts ...string) {
	if len(*l) > 0 {
		*l = append(*l, between...)
	}
	for _, p := range parts {
		*l = append(*l, p...)
	}
}

// Begin starts an empty write of an item of a table.
func (w *Write) Begin(t *Table) {
	w.table, w.names, w.values = t, make(map[string]string, 8), make(Item, 8)
	w.known, w.set, w.remove, w.cond = w.room.known[:0], w.room.set[:0], w.room.remove[:0], w.room.cond[:0]
}

// NewWrite starts an empty write.
func (t *Table) NewWrite() *Write {
	w := &Write{}
	w.Begin(t)
	return w
}

// Most writes need no more placeholders than these, which are made once.
var namePlaceholders, valuePlaceholders = placeholders("#n"), placeholders(":v")

func placeholders(prefix string) (all [32]string) {
	for i := range all {
		all[i] = prefix + strconv.Itoa(i)
	}
	return all
}

func placeholder(made *[32]string, prefix string, i int) string {
	if i < len(made) {
		return made[i]
	}
	return prefix + strconv.Itoa(i)
}

// Name returns the placeholder of an attribute.
func (w *Write) Name(attr string) string {
	i := slices.Index(w.known, attr)
	if i < 0 {
		i = len(w.known)
		w.known = append(w.known, attr)
	}
	p := placeholder(&namePlaceholders, "#n", i)
	w.names[p] = attr
	return p
}

// Value returns a placeholder for a value.
func (w *Write) Value(v types.AttributeValue) string {
	p := placeholder(&valuePlaceholders, ":v", len(w.values)) // distinct: values only grow
	w.values[p] = v
	return p
}

// Set gives an attribute a value.
func (w *Write) Set(attr string, v types.AttributeValue) { w.SetTo(attr, w.Value(v)) }

// SetTo gives an attribute the value of an operand made of placeholders.
func (w *Write) SetTo(attr, operand string) {
	w.set.append(", ", w.Name(attr), " = ", operand)
}

// SetPath gives what is at a path made of placeholders a value, such as an element of a list.
func (w *Write) SetPath(path string, v types.AttributeValue) {
	w.set.append(", ", path, " = ", w.Value(v))
}

// AddTo adds a placeholder's value to an attribute: the elements of a set, say.
func (w *Write) AddTo(attr, value string) { w.add.append(", ", w.Name(attr), " ", value) }

// Remove removes attributes.
func (w *Write) Remove(attrs ...string) {
	for _, attr := range attrs {
		w.remove.append(", ", w.Name(attr))
	}
}

// RemovePath removes what is at a path made of placeholders.
func (w *Write) RemovePath(path string) { w.remove.append(", ", path) }

// Apply adds the changes of the user's attributes.
func (w *Write) Apply(d Diff) {
	for _, a := range d.Set {
		w.Set(a.Name, a.Value)
	}
	w.Remove(d.Remove...)
}

// If adds a condition made of placeholders, in one or more pieces; all conditions must
// hold.
func (w *Write) If(cond ...string) { w.cond.append(" AND ", cond...) }

// IfExists demands that an attribute is there.
func (w *Write) IfExists(attr string) { w.If("attribute_exists(", w.Name(attr), ")") }

// IfAbsent demands that an attribute is not there.
func (w *Write) IfAbsent(attr string) { w.If("attribute_not_exists(", w.Name(attr), ")") }

// IfEqual demands that an attribute has a value.
func (w *Write) IfEqual(attr string, v types.AttributeValue) {
	w.If(w.Name(attr), " = ", w.Value(v))
}

// IfSeen demands that attributes are as they were in an item: equal, or absent.
func (w *Write) IfSeen(item Item, attrs ...string) {
	for _, attr := range attrs {
		if v, ok := item[attr]; ok {
			w.IfEqual(attr, v)
		} else {
			w.IfAbsent(attr)
		}
	}
}

// Update returns the request. It returns the old item if the condition fails,
// and nothing if the write is applied: the writer knows the item.
func (w *Write) Update(key Item) (*dynamodb.UpdateItemInput, error) {
	var text strings.Builder
	text.Grow(len("SET  REMOVE  ADD  DELETE ") + len(w.set) + len(w.remove) + len(w.add) + len(w.del))
	section(&text, "SET ", w.set)
	section(&text, " REMOVE ", w.remove)
	section(&text, " ADD ", w.add)
	section(&text, " DELETE ", w.del)
	texts := &struct{ update, cond string }{text.String(), string(w.cond)}
	if err := CheckExpressions(texts.update, texts.cond); err != nil {
		return nil, w.table.Classify(err)
	}
	in := &dynamodb.UpdateItemInput{
		TableName:                           &w.table.Name,
		Key:                                 key,
		ExpressionAttributeNames:            w.names,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if texts.update != "" {
		in.UpdateExpression = &texts.update
	}
	if texts.cond != "" {
		in.ConditionExpression = &texts.cond
	}
	if len(w.values) > 0 {
		in.ExpressionAttributeValues = w.values
	}
	return in, nil
}

// Delete returns the request that deletes the item under the conditions.
func (w *Write) Delete(key Item) *dynamodb.DeleteItemInput {
	cond := string(w.cond)
	in := &dynamodb.DeleteItemInput{
		TableName:                           &w.table.Name,
		Key:                                 key,
		ConditionExpression:                 &cond,
		ExpressionAttributeNames:            w.names,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if len(w.values) > 0 {
		in.ExpressionAttributeValues = w.values
	}
	return in
}

func section(text *strings.Builder, word string, l list) {
	if len(l) > 0 {
		text.WriteString(word)
		text.Write(l)
	}
}

// Clone is a copy to add more to.
func (w *Write) Clone() Write {
	c := *w
	c.names, c.values = maps.Clone(w.names), maps.Clone(w.values)
	c.known = slices.Clone(w.known)
	for _, l := range []*list{&c.set, &c.remove, &c.add, &c.del, &c.cond} {
		*l = slices.Clone(*l)
	}
	return c
}
