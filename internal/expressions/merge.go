package expressions

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// Update is a user's update, with conditions, all of which must hold.
type Update struct {
	core *protocol.Core
	expr expression.Expression
}

// Build builds a user's update and conditions. The builders are built by themselves and
// their text is taken over later, because builders share state: one that is extended here
// would come back changed.
func Build(core *protocol.Core, update expression.UpdateBuilder, conditions []expression.ConditionBuilder) (*Update, error) {
	builder := expression.NewBuilder().WithUpdate(update)
	if len(conditions) > 0 {
		all := conditions[0]
		if len(conditions) > 1 {
			all = expression.And(all, conditions[1], conditions[2:]...)
		}
		builder = builder.WithCondition(all)
	}
	expr, err := core.Build(builder)
	if err != nil {
		return nil, core.Classify(&ddb.MergeError{Err: fmt.Errorf("the expression cannot be used: %w", err)})
	}
	return &Update{core, expr}, nil
}

// Merge adds the update and its conditions to a write. Attributes that forbidden names are
// refused. reads are those on whose values the update builds.
func (u *Update) Merge(w *protocol.Write, forbidden func(attr string) error) (reads []string, err error) {
	if cond := u.expr.Condition(); cond != nil {
		w.If("(" + *cond + ")")
	}
	names := u.expr.Names()
	for line := range strings.Lines(*u.expr.Update()) {
		verb, changes, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !w.Section(verb, changes) {
			return nil, u.core.Classify(&ddb.MergeError{Err: fmt.Errorf("the update has a section %q that is not known here", verb)})
		}
		for _, part := range operations(changes) {
			// The expression package writes every attribute as a placeholder, and the
			// path that an operation changes first.
			used := userName.FindAllString(part, -1)
			if err := forbidden(names[used[0]]); err != nil {
				return nil, err
			}
			if verb == "SET" || verb == "REMOVE" {
				used = used[1:]
			}
			for _, p := range used {
				reads = append(reads, names[p])
			}
		}
	}
	w.Include(names, u.expr.Values())
	return reads, nil
}

// userName is a placeholder of the expression package.
var userName = regexp.MustCompile(`#[0-9]+`)

// operations splits a section of an update into the single operations' texts.
func operations(section string) (ops []string) {
	depth, from := 0, 0
	for i, r := range section {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				ops = append(ops, section[from:i])
				from = i + 1
			}
		}
	}
	return append(ops, section[from:])
}
