package expressions

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// checkNames refuses an expression that names an attribute which neither the type nor the
// library has: DynamoDB would write it as a new one, or find that it is never there.
func checkNames(core *protocol.Core, expr expression.Expression) error {
	if core.AnyAttribute {
		return nil
	}
	names := expr.Names()
	for _, text := range []*string{expr.Update(), expr.Condition()} {
		if text == nil {
			continue
		}
		for _, found := range firstName.FindAllStringSubmatch(*text, -1) {
			if name := names[found[1]]; !isKnown(core, name) {
				return fmt.Errorf("%w: the expression names attribute %q, which the type does not have; the nearest that it has is %q; nothing was sent: mend the name, or set TableConfig.AnyAttribute", repo.ErrConfig, name, nearest(core, name))
			}
		}
	}
	return nil
}

// firstName is the placeholder that begins a path: those within it follow a dot.
var firstName = regexp.MustCompile(`(?:^|[^.])(#[0-9]+)`)

// isKnown reports whether an attribute is the type's or the library's.
func isKnown(core *protocol.Core, name string) bool {
	return slices.Contains(core.Mapped, name) || core.IsKey(name) || core.Reserved(name) || name == core.Attr.TTL
}

// nearest is the attribute of the type which is the fewest edits away from a name.
func nearest(core *protocol.Core, name string) string {
	best, least := core.Partition, distance(name, core.Partition)
	for _, known := range core.Mapped {
		if d := distance(name, known); d < least {
			best, least = known, d
		}
	}
	if core.Sort != "" && distance(name, core.Sort) < least {
		return core.Sort
	}
	return best
}

// distance is how many characters must be added, removed or replaced to make a of b.
func distance(a, b string) int {
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
