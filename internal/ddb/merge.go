package ddb

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
)

// MergeError says that a user's update cannot be used.
type MergeError struct{ Err error }

func (e *MergeError) Error() string { return e.Err.Error() }
func (e *MergeError) Unwrap() error { return e.Err }

// Merge adds a user's update to the write, and conditions, all of which must hold.
// The user's builders are built by themselves and their text taken over, because
// builders share state: one that is extended here would come back changed.
// Attributes that forbidden names are refused.
func (w *Write) Merge(update expression.UpdateBuilder, conditions []expression.ConditionBuilder, forbidden func(attr string) error) error {
	builder := expression.NewBuilder().WithUpdate(update)
	if len(conditions) > 0 {
		all := conditions[0]
		if len(conditions) > 1 {
			all = expression.And(all, conditions[1], conditions[2:]...)
		}
		builder = builder.WithCondition(all)
	}
	expr, err := builder.Build()
	if err != nil {
		return w.table.Classify(&MergeError{fmt.Errorf("the update cannot be built: %w", err)})
	}
	if cond := expr.Condition(); cond != nil {
		w.If("(" + *cond + ")")
	}
	names := expr.Names()
	for line := range strings.Lines(*expr.Update()) {
		verb, changes, _ := strings.Cut(strings.TrimSpace(line), " ")
		to := map[string]*list{"SET": &w.set, "REMOVE": &w.remove, "ADD": &w.add, "DELETE": &w.del}[verb]
		if to == nil {
			return w.table.Classify(&MergeError{fmt.Errorf("the update has a section %q that is not known here", verb)})
		}
		to.append(", ", changes)
	}
	// The expression package writes every attribute as a placeholder, and the
	// path that an operation changes before the first space.
	for _, part := range operations(*expr.Update()) {
		top := part[:len(part)-len(strings.TrimLeft(part, "#0123456789"))]
		if err := forbidden(names[top]); err != nil {
			return err
		}
	}
	for p, attr := range names {
		w.names[p] = attr
	}
	for p, v := range expr.Values() {
		w.values[p] = v
	}
	return nil
}

// operations splits an update into the single operations' texts.
func operations(text string) (ops []string) {
	for line := range strings.Lines(text) {
		_, list, _ := strings.Cut(strings.TrimSpace(line), " ")
		depth, from := 0, 0
		for i, r := range list {
			switch r {
			case '(':
				depth++
			case ')':
				depth--
			case ',':
				if depth == 0 {
					ops = append(ops, strings.TrimSpace(list[from:i]))
					from = i + 1
				}
			}
		}
		ops = append(ops, strings.TrimSpace(list[from:]))
	}
	return ops
}
