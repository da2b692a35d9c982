package stored

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Build builds an expression of the user's, all of whose names the type or the library has:
// DynamoDB would write another as a new attribute, or find that it is never there.
func (t *Table) Build(builder expression.Builder) (expression.Expression, error) {
	expr, err := builder.Build()
	if err != nil {
		return expr, err
	}
	for _, v := range expr.Values() {
		if v == nil || reflect.ValueOf(v).IsNil() { // which would be sent, in vain
			return expr, errors.New("a value in it is nothing that is stored, such as a channel, a function, a complex number or no attribute value")
		}
	}
	if filter := expr.Filter(); filter != nil { // others become part of a write
		if err := ddb.CheckExpressions("", *filter); err != nil {
			return expr, err
		}
	}
	names := expr.Names()
	for _, text := range []*string{expr.Update(), expr.Condition(), expr.Filter()} {
		if text == nil {
			continue
		}
		for _, in := range operands.FindAllString(*text, -1) {
			if n := strings.Count(in, ",") + 1; n > maxIn {
				return expr, fmt.Errorf("an IN of it has %d values, DynamoDB takes %d: join several by OR", n, maxIn)
			}
		}
		if t.AnyAttribute {
			continue
		}
		for _, name := range FirstNames(*text, names) {
			if !t.isKnown(name) {
				return expr, fmt.Errorf("it names attribute %q, which the type does not have; the nearest that it has is %q; nothing was sent: mend the name, or set TableConfig.AnyAttribute", name, t.nearest(name))
			}
		}
	}
	return expr, nil
}

// FirstNames are the attributes that an expression names, not those within them.
func FirstNames(text string, names map[string]string) (first []string) {
	for _, found := range firstName.FindAllStringSubmatch(text, -1) {
		first = append(first, names[found[1]])
	}
	return first
}

// firstName is the placeholder that begins a path: those within it follow a dot.
var firstName = regexp.MustCompile(`(?:^|[^.])(#[0-9]+)`)

// operands are those of an IN, of which DynamoDB takes so many. Engines may take more.
var operands = regexp.MustCompile(` IN \([^)]*\)`)

const maxIn = 100

// isKnown reports whether an attribute is the type's or the library's.
func (t *Table) isKnown(name string) bool {
	return slices.Contains(t.Mapped, name) || t.IsKey(name) || t.Reserved(name) || name == t.Attr.TTL
}

// nearest is the attribute of the type which is the fewest edits away from a name.
func (t *Table) nearest(name string) string {
	best, least := t.Partition, Distance(name, t.Partition)
	for _, known := range append(t.Named(t.Sort), t.Mapped...) {
		if d := Distance(name, known); d < least {
			best, least = known, d
		}
	}
	return best
}

// Distance is how many characters must be added, removed or replaced to make a of b.
func Distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1) // of the characters of a so far, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i, r := range from {
		before := row[0]
		row[0] = i + 1
		for j, s := range to {
			replaced := before
			if r != s {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(to)]
}
