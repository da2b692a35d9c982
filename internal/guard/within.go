package guard

import "context"

// Within marks the context of a change of one item by one repository: a call for
// the same item from inside the change must not stand in line behind it.
type Within struct {
	By  any // the repository
	Key string
}

// In reports whether ctx is that of such a change.
func (w Within) In(ctx context.Context) bool { return ctx.Value(w) != nil }

// Mark makes change run with a marked context.
func Mark[T any](w Within, change func(context.Context, *T) error) func(context.Context, *T) error {
	return func(ctx context.Context, item *T) error {
		return change(context.WithValue(ctx, w, true), item)
	}
}
