package stored

import (
	"errors"
	"time"
)

// WholeSeconds refuses a time that would lose its fraction as whole seconds.
func WholeSeconds(at time.Time) error {
	if at.Nanosecond() == 0 {
		return nil
	}
	return errors.New("the event time has a fraction of a second, which its attribute cannot keep: truncate it, or use an integer of milliseconds with nolock.Config.Unit")
}
