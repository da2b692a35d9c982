package jobs

import (
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/lease"
)

// localResource is what the callers of one resource in this process share: the writes
// under way, and what was found out about its line. No safety rests on it.
type localResource struct {
	turn   lease.Exclusive // held by the Next that reads the line
	coming lease.Exclusive // held by the Enqueue that is under way

	mu      sync.Mutex           // guards all that follows
	waiting []*change            // for the next transaction
	flights int                  // transactions under way
	raced   time.Time            // when another process was last seen to start jobs of the same line
	unmoved time.Time            // until then those whose time has come are left where they are: its row cannot be read
	deep    time.Time            // the last reading behind the head of the line
	behind  string               // the place where that ended; "" for the head
	noted   map[string]time.Time // rows that cannot be read, by place, since they were first seen
	starts  int                  // jobs that were started since one of another level was
	level   int                  // the level whose turn it was then; 0: there was none
	oldest  time.Time            // since when the first job waits that the last reading found; zero: none was

	// The last reading has found nothing to start, and until a row can be started by the
	// clock alone, because it is due or its holder is dead, no other one will: unless the
	// resource changes, or, where the limit was used up, something has ended.
	restUntil time.Time
	restAt    int64 // its changes
	restFull  bool
}

// maxLocals is of how many resources, those that were used last, a process has one.
const maxLocals = 10_000

// localResource returns that of a resource.
func (s *store) localResource(resource string) (st *localResource) {
	s.locals.Change(resource, func(known *localResource) (*localResource, bool) {
		if st = known; st == nil {
			st = &localResource{}
		}
		return st, true
	})
	return st
}
