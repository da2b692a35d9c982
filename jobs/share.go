package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

// Where Config.Resources names resources, a dispatcher looks at these alone, and shares its
// starts among them by weight: the next is that of the resource which has had the fewest in
// proportion ("stride scheduling", Waldspurger and Weihl, 1995). One that had no work, or no
// room, for a while comes back with a credit of one round, its weight in starts, and not with
// all that it has missed: so none of the others waits for long.

// maxWeight bounds a weight: a credit of more would be for ever.
const maxWeight = 1000

// checkResources checks the names and weights of a program, and keeps them.
func (s *store) checkResources() error {
	for name, weight := range s.cfg.Resources {
		if err := s.table.CheckName(name); err != nil {
			return err
		}
		if weight < 1 || weight > maxWeight {
			return fmt.Errorf("%w: the weight of resource %q is %d: use 1 to %d", repo.ErrConfig, name, weight, maxWeight)
		}
		s.served[resources.ShardOf(name)] = true
	}
	s.cfg.Resources = maps.Clone(s.cfg.Resources)
	return nil
}

// serves reports whether Run handles jobs of a resource.
func (s *store) serves(resource string) bool {
	return len(s.cfg.Resources) == 0 || s.cfg.Resources[resource] > 0
}

// servesIn reports whether Run handles jobs of resources of a shard.
func (s *store) servesIn(shard int) bool { return len(s.cfg.Resources) == 0 || s.served[shard] }

// weight is that of a resource, 1 where none was given.
func (s *store) weight(p *post) float64 { return float64(max(s.cfg.Resources[p.now.Name], 1)) }

// take takes out of a line which resource comes next, without weights the first, and says how
// many of the free workers are its share, one at least. None: one that is being started comes
// before it. The caller holds mu.
func (d *dispatcher) take(line *[]*post) (p *post, n int) {
	if len(d.s.cfg.Resources) == 0 {
		p, n = (*line)[0], max(d.free/len(*line), 1)
		*line = (*line)[1:]
		return p, n
	}
	at := 0
	for i, o := range *line {
		if o.had < (*line)[at].had {
			at = i
		}
	}
	if p = (*line)[at]; d.waits(p) {
		return nil, 0
	}
	p.among = d.wanting()
	*line = slices.Delete(*line, at, at+1)
	return p, max(int(float64(d.free)*d.s.weight(p)/p.among), 1)
}

// wanting are the weights together of the resources that have work and room. The caller holds
// mu.
func (d *dispatcher) wanting() (all float64) {
	for _, p := range d.posts {
		if p.inLine || p.starting && p.hasMore() {
			all += d.s.weight(p)
		}
	}
	return all
}

// hasMore reports whether a resource of which jobs are being started has more, and room.
func (p *post) hasMore() bool {
	return p.now.Queued > p.taking && p.now.Running+p.taking < p.now.Limit
}

// waits reports whether another comes before the first of the line, of which jobs
// are being started, so that it is in no line: as it has more, it gets the worker when these
// are started, if that does not take long. The caller holds mu.
func (d *dispatcher) waits(first *post) bool {
	for _, p := range d.posts {
		if p.starting && p.had < first.had && p.hasMore() && time.Since(p.begun) < overtake {
			return true
		}
	}
	return false
}

// waitedFor has a value when a start that the next worker waits for takes too long.
func (d *dispatcher) waitedFor() <-chan time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.s.cfg.Resources) == 0 || d.free <= 0 || len(d.line) == 0 {
		return nil
	}
	return time.After(overtake)
}

// comesBack takes from a resource that is put in line what it has missed beyond one round.
// The caller holds mu.
func (d *dispatcher) comesBack(p *post) { p.had = max(p.had, d.round-1) }

// counts notes starts of a resource, or that some were not needed. The caller holds mu.
func (d *dispatcher) counts(p *post, n int) {
	if p.among > 0 {
		p.had += float64(n) / d.s.weight(p)
		d.round += float64(n) / p.among
	}
}
