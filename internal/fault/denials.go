package fault

import (
	"bytes"
	"net/http"
	"sync"
)

// Denials refuses the writes of a process from the nth on, and all that it sends again,
// for a reason that is none of the item's: of a copy that came before it that says
// nothing. Its Pass is for [Copier.On].
type Denials struct {
	Nth     int    // from 0
	Code    string // what the answers say
	Applied bool   // a copy of the nth write arrives, and is applied
	Unread  bool   // what is read behind it is refused as well
	Alone   bool   // nothing but the nth write is refused, however often it is sent
	Enough  func() // called when so many were refused that the caller has waited for long enough

	mu       sync.Mutex
	writes   int
	answered bool
	first    []byte // the nth write
}

// mostDenied is how many refusals a caller waits for: more than a client's policy does.
const mostDenied = 12

// Pass is the answer to a request, or nothing if it passes.
func (d *Denials) Pass(one *Copy) (*http.Response, error) {
	writes := Writes(one)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case writes:
		d.writes++
	case !d.Unread || !d.answered:
		return nil, nil
	}
	if writes && d.writes <= d.Nth || d.Alone && d.first != nil && !bytes.Equal(d.first, one.Body) {
		return nil, nil
	}
	d.first = one.Body
	if d.Applied && !d.answered {
		resp, err := one.Deliver()
		if err != nil || resp.StatusCode != http.StatusOK {
			return resp, err // there was nothing to apply: the call sends another one
		}
	}
	d.answered = true
	if d.writes > d.Nth+mostDenied {
		d.Enough()
	}
	return one.Met(d.Code, 0), nil
}

// Denied reports whether anything was refused.
func (d *Denials) Denied() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answered
}
