package delegate

import (
	"context"
	"errors"
	"maps"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
)

// errNoRing ends a round on an item that remembers no writer. Nothing was written.
var errNoRing = errors.New("the item has no ring of writers")

// needsRing reports whether an edit would be written on an item without a ring, as one that
// was put by hand. Many processes may begin there at one moment. Of a write that is refused
// late the image shows others' ids alone: what proves that it was not applied is an id of the
// ring that it demands. So the item gets a ring first: one write more, once in its life.
func (r *round) needsRing(image ddb.Item, edit typed.Edit) bool {
	return len(r.l.e.core.Ring(image)) == 0 && (r.count > 0 || !edit.Diff.Empty())
}

// begin gives the item a ring, of an id that is nobody's. Who comes second has met another
// writer.
func (r *round) begin(ctx context.Context, image ddb.Item) (ddb.Item, error) {
	core, mark := r.l.e.core, protocol.NewMark()
	w := core.NewWrite()
	cas.Move(w, mark, image, core.Version, core.Attr.Tombstone)
	in, err := w.Update(r.l.raw)
	if err != nil {
		return nil, err
	}
	ring := core.Push(mark, image)
	res := core.Update(ctx, in, ddb.Options{Holding: true, Decide: true})
	switch {
	case res.Outcome == ddb.Applied, res.Outcome == ddb.Condition && ddb.Equal(res.Image[core.Attr.Writers], ring):
		image = maps.Clone(image)
		image[core.Attr.Writers] = ring
		return image, nil
	case res.Outcome == ddb.Condition && core.Hidden(res.Image):
		return nil, lock.NotFound(r.l.key, core.Name)
	case res.Outcome == ddb.Condition:
		r.foreign = res.Image
		return nil, errElsewhere
	}
	res.Outcome = ddb.Refused // of what was to be written, whatever came of the ring
	return nil, lock.Failed(core, r.l.key, res)
}
