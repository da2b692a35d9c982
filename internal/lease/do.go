package lease

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/repo"
)

// Do runs fn with what take takes. The context of fn ends with ctx, and, with the
// cause, when what is held is lost; inside makes it tell of that. release follows, also
// when fn panics; its error is joined to that of fn, or, where that has none, to
// repo.ErrDone.
func Do[H interface{ Context() context.Context }](ctx context.Context, take func(context.Context) (H, error), inside func(H, context.Context) context.Context, fn func(context.Context, H) error, release func(H, context.Context) error) (err error) {
	if fn == nil {
		return fmt.Errorf("%w: the function is nil", repo.ErrConfig)
	}
	held, err := take(ctx)
	if err != nil {
		return nesting.Returned(err) // whatever stays of it: fn has not run
	}
	done := false // fn has not panicked, nor failed
	defer func() {
		over := release(held, ctx)
		if done && over != nil {
			over = fmt.Errorf("%w: %w", repo.ErrDone, over)
		}
		unwritten := repo.VerdictOf(err) == repo.NotWritten
		if err = nesting.Beside(err, over); unwritten {
			err = nesting.Returned(err) // what became of the release says nothing of what fn has written
		}
	}()
	work, cancel := ddb.Merge(ctx, held.Context()) // the release needs ctx itself
	defer cancel()
	err = fn(inside(held, work), held)
	done = err == nil
	return err
}
