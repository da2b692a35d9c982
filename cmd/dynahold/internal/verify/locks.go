package verify

import (
	"fmt"
	"time"
)

const stamp = "2006-01-02T15:04:05.000Z07:00"

// second is as exactly as a stream tells the time of a change.
const second = time.Second

// forced reports whether somebody else has ended the hold that stood.
func (s *step) forced() bool {
	return s.was.HasToken() && s.is.Stolen == s.was.Held && s.was.Stolen != s.is.Stolen
}

// live reports whether the lease of the hold that stood was surely not over yet, by any
// clock, and by who has watched it.
func (s *step) live() bool {
	if !s.was.Busy() || s.Time.IsZero() || !s.was.Until.After(s.Time.Add(second+s.cfg.Skew)) {
		return false
	}
	watched := !s.locked.IsZero() && s.Time.Sub(s.locked)+second >= s.was.Lease
	return s.was.Endless() || s.was.Lease <= 0 || !watched && !s.locked.IsZero()
}

// tokens: they never fall, and each hold has a new one.
func (s *step) tokens() string {
	if len(s.Before) == 0 || len(s.After) == 0 {
		return ""
	}
	switch {
	case s.was.Token > 0 && s.is.Token < s.was.Token:
		return fmt.Sprintf("the next token fell from %d to %d", s.was.Token, s.is.Token)
	case s.was.Stolen >= 0 && s.is.Stolen < s.was.Stolen:
		return fmt.Sprintf("the newest token that somebody else ended fell from %d to %d", s.was.Stolen, s.is.Stolen)
	case !s.begins():
		return ""
	case s.is.Held <= max(s.held, s.was.Held):
		return fmt.Sprintf("%s holds it with token %d, and a hold before had %d", s.is.Owner(), s.is.Held, max(s.held, s.was.Held))
	case s.is.Token <= s.is.Held:
		return fmt.Sprintf("%s holds it with token %d, and the next one is %d", s.is.Owner(), s.is.Held, s.is.Token)
	}
	return ""
}

// begins reports whether another hold stands since this change.
func (s *step) begins() bool {
	return s.is.Busy() && !s.is.ByHand() && (s.is.Held != s.was.Held || !s.was.Busy())
}

// lease: a hold is ended by its holder, after its lease, or by force.
func (s *step) lease() string {
	if !s.begins() || !s.live() || !s.forced() {
		return ""
	}
	return fmt.Sprintf("%s took it over from %s, token %d, whose lease was until %s", s.is.Owner(), s.was.Owner(), s.was.Held, s.was.Until.UTC().Format(stamp))
}
