package ddb

import (
	"crypto/rand"
	"errors"
	"math"
	"time"
)

// Sending is one write over several calls that send it: the bytes, and the token of a
// transaction, stay the same, so that whatever of it arrives, and however often, is one.
type Sending struct {
	token    string    // "": the write is no transaction
	first    time.Time // when its first attempt was sent; zero: none was
	doubt    bool      // an attempt may have been applied
	unjudged bool      // see [Result.Unjudged]
	body     []byte
}

// NewSending is a transaction under a token, which somebody may have sent before, for as long
// as that is known; "" makes a new one. Calls with one token and the same writes are one.
func NewSending(token string, known time.Duration) *Sending {
	if token == "" {
		return &Sending{token: rand.Text()}
	}
	s := &Sending{token: token}
	if known > 0 {
		s.first = time.Now().Add(-known)
	}
	return s
}

// The service knows a token again for ten minutes: a repeated transaction that was
// applied is then a success, and nothing more. Behind that it would be applied again, so
// the last attempt ends before, with room for what clocks and networks make of it.
const (
	tokenKept   = 10 * time.Minute
	tokenMargin = time.Minute
)

var errLapsed = errors.New("it is not sent again: the service may not know its token any more")

// lapsed reports whether it is too late for another attempt after a while.
func (s *Sending) lapsed(after time.Duration) bool { return s.left() <= after }

// left is for how long the write may be sent yet.
func (s *Sending) left() time.Duration {
	if s == nil || s.token == "" || s.first.IsZero() {
		return math.MaxInt64
	}
	return tokenKept - tokenMargin - elapsed(s.first, time.Now())
}

// elapsed is the longer of what the monotonic clock says, which stands still in a machine
// that is suspended, and the clock on the wall, which may be set.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// begin makes a call go on with what was sent before.
func (c *call) begin() {
	s := c.opt.Sending
	if s == nil {
		return
	}
	c.res.Clean, c.res.Unjudged = !s.doubt, s.unjudged
	if s.first.IsZero() {
		s.first = c.res.Sent
	}
	c.first.replay.body = s.body
}

// end keeps for the next call what was sent.
func (c *call) end() {
	s := c.opt.Sending
	if s == nil {
		return
	}
	s.doubt, s.unjudged = s.doubt || !c.res.Clean, s.unjudged || c.res.Unjudged
	if c.attempt != nil {
		s.body = c.attempt.replay.stored()
	}
}

// tooLate ends a call for whose next attempt it is too late.
func (c *call) tooLate() bool {
	if !c.opt.Sending.lapsed(0) {
		return false
	}
	c.giveUp(Join(errLapsed, c.res.Err))
	c.res.Outcome = Unknown // a refusal for the moment proves nothing of its copies
	return true
}
