package delegate

import (
	"context"
	"sync"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/typed"
)

// ids are those of the operations of a round, with what is known of them already: a round
// that begins again, since others have written, asks no row twice.
type ids map[string]*typed.Once

// consulting is how many rows of ids are read side by side.
const consulting = 64

// consult reads the rows beside an item that has too many ids, side by side: one by one they
// would take so long that those who wait took the leader for gone. A row that cannot be
// read is read again for its command, which then says why.
func (r *round) consult(ctx context.Context, image ddb.Item) {
	r.know()
	room := make(chan struct{}, consulting)
	var all sync.WaitGroup
	for _, once := range r.ids {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			_ = once.Consult(ctx, r.l.e.core, image)
		})
	}
	all.Wait()
}

// know adds the ids of all commands of the round.
func (r *round) know() {
	if r.ids == nil {
		r.ids = ids{}
	}
	if r.own != nil {
		r.ids.add(r.own.orders())
	}
	for _, m := range r.mails {
		r.ids.add(m.orders)
	}
}

func (known ids) add(orders []order) {
	for _, o := range orders {
		if o.once == "" || known[o.once] != nil {
			continue
		}
		one := typed.OnceCalls{ID: o.once}
		_ = one.Do(func(once *typed.Once) error { known[o.once] = once; return nil })
	}
}
