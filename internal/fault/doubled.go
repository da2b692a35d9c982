package fault

import (
	"net/http"
	"sync"
)

// DoubledReleases is a network over which a holder's commit has no answer, whether it is
// carried out or not, and each release behind it is delivered twice: the second answer is
// seen. Its Pass is for [Copier.On].
type DoubledReleases struct {
	Applied bool                               // the commit is carried out
	Is      func(*Copy) (commit, release bool) // called once for each request, in order
	Lost    func()                             // called when the commit has lost its answer
	Between func()                             // called between the two deliveries of a release
	Failed  func(error)                        // told of a delivery that went wrong

	mu sync.Mutex
}

// Pass is the answer to a request, or nothing if it passes.
func (d *DoubledReleases) Pass(one *Copy) (*http.Response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	commit, release := d.Is(one)
	if release || commit && d.Applied {
		if _, err := one.Deliver(); err != nil {
			d.Failed(err)
		}
	}
	switch {
	case commit:
		d.Lost()
		return nil, reset()
	case release:
		d.Between()
	}
	return nil, nil
}
