package single_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/repo"
)

// coverable are the calls that read nothing and whose one trace the next such write of
// others covers (limits.md).
var coverable = map[string]bool{
	"optimistic.Apply": true, "optimistic.Apply, guarded": true, "pessimistic.Apply": true, "nolock.Put": true, "nolock.Apply": true,
}

// Writes that are refused as in TestDenied, while others change the item between the copy
// and the refusal: by an expression, which leaves its id where another such id was.
func TestDeniedBehindOthers(t *testing.T) {
	for _, c := range calls() {
		if c.locks {
			continue // others are kept out
		}
		for name, others := range map[string]func(t *testing.T, w *world){
			"an update":   func(t *testing.T, w *world) { w.write(t, 1) },
			"ten updates": func(t *testing.T, w *world) { w.write(t, 10) },
			"two expressions": func(t *testing.T, w *world) {
				for range 2 {
					_, _ = w.others.Apply(context.Background(), fixture.Key, expression.Set(expression.Name("note"), expression.Value("by others")))
				}
			},
		} {
			for _, applied := range []bool{true, false} {
				if applied && coverable[c.name] && name == "two expressions" {
					continue
				}
				t.Run(c.name+"/"+name+map[bool]string{true: ", a copy applied"}[applied], func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, c)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					no := &fault.Denials{Code: "AccessDeniedException", Applied: applied, Enough: cancel}
					_, _ = w.mine.Get(ctx, fixture.Key) // its credentials have been good before
					var once sync.Once
					w.copier.On(func(one *fault.Copy) (*http.Response, error) {
						resp, err := no.Pass(one)
						if no.Denied() {
							once.Do(func() { others(t, w) })
						}
						return resp, err
					})
					err := w.run(ctx, w.was)
					w.copier.On(nil)
					n, told := w.applied(t, c), repo.VerdictOf(err)
					if told == repo.NotWritten && n > 0 || told == repo.Written && n == 0 {
						t.Errorf("told %v (%v), and applied %d times", told, err, n)
					}
				})
			}
		}
	}
}
