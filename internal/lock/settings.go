package lock

import (
	"fmt"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// Settings say how to behave towards holders.
type Settings struct {
	Wait  repo.Wait
	Skew  time.Duration // how much clocks may differ
	Fail  bool          // give up at once with ErrLocked instead of waiting
	Clock func() time.Time
}

// NewSettings fills in defaults and checks.
func NewSettings(wait repo.Wait, skew time.Duration, fail bool) (s Settings, err error) {
	s = Settings{Fail: fail, Clock: time.Now}
	if s.Wait, err = Waiting(wait); err != nil {
		return s, err
	}
	s.Skew, err = ClockSkew(skew)
	return s, err
}

// Waiting fills in what is not set and refuses what makes no sense.
func Waiting(w repo.Wait) (repo.Wait, error) {
	if w.Min < 0 || w.Max < 0 || w.Attempts < 0 {
		return w, fmt.Errorf("%w: Wait.Min, Max and Attempts cannot be negative", repo.ErrConfig)
	}
	if w.Min == 0 {
		w.Min = 5 * time.Millisecond
	}
	if w.Max == 0 {
		w.Max = max(500*time.Millisecond, w.Min)
	}
	if w.Max < w.Min {
		return w, fmt.Errorf("%w: Wait.Max (%v) is less than Wait.Min (%v)", repo.ErrConfig, w.Max, w.Min)
	}
	return w, nil
}

// defaultSkew is how much clocks may differ before someone takes over an expired
// lock too early.
const defaultSkew = time.Second

// ClockSkew fills in the default for 0 and refuses negative values.
func ClockSkew(d time.Duration) (time.Duration, error) {
	if d < 0 {
		return 0, fmt.Errorf("%w: ClockSkew is negative (%v); use 1 ns for none", repo.ErrConfig, d)
	}
	if d == 0 {
		return defaultSkew, nil
	}
	return d, nil
}
