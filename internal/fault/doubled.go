package fault

import (
	"errors"
	"net/http"
	"sync"
)

// DoubledReleases is a network over which a holder's commit has no answer, whether it is
// carried out or not, and each release behind it is delivered twice: the second answer is
// seen.
type DoubledReleases struct {
	Applied bool                               // the commit is carried out
	Is      func(*Copy) (commit, release bool) // called once for each request, in order
	Failed  func(error)                        // told what a test cannot go on with
	Between func()                             // before the second delivery of a release
	Lost    func()                             // the commit's answer is lost
	mu      sync.Mutex                         // one request at a time
}

// Pass is what a Copier does with each request.
func (d *DoubledReleases) Pass(one *Copy) (*http.Response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	commit, release := d.Is(one)
	if release || commit && d.Applied {
		d.deliver(one)
	}
	switch {
	case commit:
		d.Lost()
		return nil, errors.New("connection reset by peer")
	case release:
		d.Between()
	}
	return nil, nil
}

func (d *DoubledReleases) deliver(one *Copy) {
	resp, err := one.Deliver()
	if err == nil {
		err = resp.Body.Close()
	}
	if err != nil {
		d.Failed(err)
	}
}
