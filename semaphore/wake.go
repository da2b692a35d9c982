package semaphore

import "sync"

// dispatchers are the calls of Run in this process, by table: an Enqueue tells
// them of its job, so that it does not wait for their next look.
var dispatchers = struct {
	mu sync.Mutex
	of map[string]map[*listener]struct{} // guarded by mu
}{of: map[string]map[*listener]struct{}{}}

// listener is told of resources that may have work. It must not wait.
type listener struct{ tell func(resource string) }

// listen registers a dispatcher until stop is called.
func (s *store) listen(tell func(resource string)) (stop func()) {
	l := &listener{tell}
	dispatchers.mu.Lock()
	defer dispatchers.mu.Unlock()
	of := dispatchers.of[s.core.Name]
	if of == nil {
		of = map[*listener]struct{}{}
		dispatchers.of[s.core.Name] = of
	}
	of[l] = struct{}{}
	return func() {
		dispatchers.mu.Lock()
		defer dispatchers.mu.Unlock()
		if delete(of, l); len(of) == 0 {
			delete(dispatchers.of, s.core.Name)
		}
	}
}

// wake tells the dispatchers of this process that a resource has a job more. One
// of another table with the same name looks in vain.
func (s *store) wake(resource string) {
	dispatchers.mu.Lock()
	defer dispatchers.mu.Unlock()
	for l := range dispatchers.of[s.core.Name] {
		l.tell(resource)
	}
}
