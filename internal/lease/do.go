package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Do runs fn with what take takes. The context of fn ends with ctx, and, with the
// cause, when what is held is lost. release follows, also when fn panics; its
// error is joined to that of fn.
func Do[H interface{ Context() context.Context }](ctx context.Context, take func(context.Context) (H, error), fn func(context.Context, H) error, release func(H, context.Context) error) (err error) {
	if fn == nil {
		return fmt.Errorf("%w: the function is nil", repo.ErrConfig)
	}
	held, err := take(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release(held, ctx)) }()
	work, cancel := ddb.Merge(ctx, held.Context()) // the release needs ctx itself
	defer cancel()
	return fn(work, held)
}
