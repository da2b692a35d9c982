package single_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// away is others' deletion of the item.
func (w *world) away(t *testing.T) {
	if err := w.others.Delete(t.Context(), fixture.Key); err != nil && !errors.Is(err, repo.ErrNotFound) {
		t.Error(err)
	}
}

// anew is their deletion and creation of it.
func (w *world) anew(t *testing.T) {
	w.away(t)
	rig.Must(w.others.Create(t.Context(), account{ID: "p", Seq: 1, At: 2000}))(t)
}

// The answer of a write that was carried out is lost, and others delete the item before
// its caller asks what became of it: it is not told that nothing was written.
func TestWhatGoesWithItsItem(t *testing.T) {
	for _, c := range calls() {
		for name, others := range map[string]func(t *testing.T, w *world){
			"deleted":                               func(t *testing.T, w *world) { w.away(t) },
			"deleted and made anew":                 func(t *testing.T, w *world) { w.anew(t) },
			"deleted and made anew, and ten writes": func(t *testing.T, w *world) { w.anew(t); w.write(t, 10) },
		} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, c)
				var writes atomic.Int32
				its := int32(1)
				if c.locks || c.refused {
					its = 2 // behind the acquire, or what others have refused
				}
				w.copier.On(func(one *fault.Copy) (*http.Response, error) {
					if !fault.Writes(one) || writes.Add(1) != its {
						return nil, nil
					}
					resp := rig.Must(one.Deliver())(t)
					rig.Is(t, resp.Body.Close())
					rig.Equal(t, resp.StatusCode, http.StatusOK, "the write's status")
					others(t, w)
					return nil, errors.New("connection reset by peer")
				})
				err := w.run(context.WithoutCancel(t.Context()), w.was)
				if repo.VerdictOf(err) == repo.NotWritten {
					t.Errorf("it was written, and told %v", err)
				}
			})
		}
	}
}

// late are the calls that nothing ties to the life of an item that they have seen: an
// expression, and a version that was given to them (limits.md).
var late = map[string]bool{"optimistic.Apply": true, "optimistic.Apply, guarded": true, "optimistic.Once.Apply": true, "pessimistic.Apply": true, "optimistic.Save": true}

// Others make the item that a call has missed, and then a copy of its request comes.
func TestACopyBehindACreation(t *testing.T) {
	for _, c := range calls() {
		if c.makes || c.deletes || c.locks {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c)
			w.away(t)
			sent := w.copier.Keep(fault.Writes)
			err := w.run(t.Context(), w.was)
			w.copier.On(nil)
			if repo.VerdictOf(err) == repo.Written {
				return // it makes what it misses
			}
			w.anew(t)
			for _, one := range sent() {
				resp, failed := one.Deliver()
				rig.Is(t, failed)
				rig.Is(t, resp.Body.Close())
			}
			if n := w.applied(t, c); (n != 0) != late[c.name] {
				t.Errorf("told %v, and applied %d times", err, n)
			}
		})
	}
}
