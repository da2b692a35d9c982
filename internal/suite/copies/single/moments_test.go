package single_test

import (
	"net/http"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// moment is when the copy of a request is delivered.
type moment struct {
	name string
	skip func(call) bool
	do   func(t *testing.T, w *world, c call) error
}

func moments() []moment {
	twice := func(between func(t *testing.T, w *world)) func(t *testing.T, w *world, c call) error {
		return func(t *testing.T, w *world, c call) error {
			nth := 0
			if c.locks {
				nth = 1 // behind the acquire
			}
			w.copier.Twice(fault.Writes, nth, func() { between(t, w) })
			return w.run(t.Context(), w.was)
		}
	}
	late := func(before func(t *testing.T, w *world, c call) error, after func(t *testing.T, w *world)) func(t *testing.T, w *world, c call) error {
		return func(t *testing.T, w *world, c call) error {
			sent := w.copier.Keep(fault.Writes)
			err := before(t, w, c)
			w.copier.On(nil)
			after(t, w)
			for _, one := range sent() {
				resp, failed := one.Deliver()
				rig.Is(t, failed)
				rig.Is(t, resp.Body.Close())
			}
			return err
		}
	}
	run := func(t *testing.T, w *world, _ call) error { return w.run(t.Context(), w.was) }
	locked := func(byHand bool) func(t *testing.T, w *world, c call) error {
		return late(func(t *testing.T, w *world, c call) error {
			// The lock comes between the read and the write, where there is a read.
			var release func()
			sent, kept := 0, []*fault.Copy(nil)
			w.copier.On(func(one *fault.Copy) (resp *http.Response, err error) {
				if !fault.Writes(one) {
					return nil, nil
				}
				if kept = append(kept, one); sent == 0 {
					sent, release = 1, w.lock(t, byHand)
				}
				return nil, nil
			})
			err := w.run(t.Context(), w.was)
			w.copier.On(nil)
			if release != nil {
				release()
			}
			for _, one := range kept {
				resp, failed := one.Deliver()
				rig.Is(t, failed)
				rig.Is(t, resp.Body.Close())
			}
			return err
		}, func(*testing.T, *world) {})
	}
	makes := func(c call) bool { return c.makes }
	return []moment{
		{"second answer seen, at once", nil, twice(func(*testing.T, *world) {})},
		{"second answer seen, behind a write", func(c call) bool { return c.unbound }, twice(func(t *testing.T, w *world) { w.write(t, 1) })},
		{"second answer seen, behind ten writes", func(c call) bool { return c.unbound || c.makes }, twice(func(t *testing.T, w *world) { w.write(t, 10) })},
		{"second answer seen, behind a hold that was broken", func(c call) bool { return c.unbound || c.deletes || c.makes }, twice(func(t *testing.T, w *world) { w.brokenHold(t) })},
		{"second answer seen, behind a hold that was broken, and ten writes", func(c call) bool { return c.unbound || c.deletes || c.makes }, twice(func(t *testing.T, w *world) {
			w.brokenHold(t)
			w.write(t, 10)
		})},
		{"second answer seen, and all behind it: too many requests", func(c call) bool { return c.locks }, func(t *testing.T, w *world, _ call) error { // who holds a lock repeats it for a lease
			first := true
			w.copier.On(func(one *fault.Copy) (*http.Response, error) {
				switch {
				case !fault.Writes(one):
					return nil, nil
				case first:
					first = false
					resp := rig.Must(one.Deliver())(t)
					rig.Is(t, resp.Body.Close())
				}
				return one.Met("ThrottlingException", 0), nil
			})
			defer w.copier.On(nil)
			return w.run(t.Context(), w.was)
		}},
		{"late, after success", nil, late(run, func(*testing.T, *world) {})},
		{"late, after success, behind ten writes", func(c call) bool { return c.unbound }, late(run, func(t *testing.T, w *world) { w.write(t, 10) })},
		{"late, after a lock by hand", makes, locked(true)},
		{"late, after a lock with a token", makes, locked(false)},
		{"late, behind ten writes that came first", func(c call) bool { return c.makes || c.unbound }, func(t *testing.T, w *world, c call) error {
			var kept []*fault.Copy
			w.copier.On(func(one *fault.Copy) (*http.Response, error) {
				if fault.Writes(one) {
					if kept = append(kept, one); len(kept) == 1 {
						w.write(t, 10)
					}
				}
				return nil, nil
			})
			err := w.run(t.Context(), w.was)
			w.copier.On(nil)
			for _, one := range kept {
				resp, failed := one.Deliver()
				rig.Is(t, failed)
				rig.Is(t, resp.Body.Close())
			}
			return err
		}},
	}
}
