package lock

import (
	"time"

	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/repo"
)

// Settings say how to behave towards holders.
type Settings struct {
	Kind  string // for telemetry
	Wait  repo.Wait
	Skew  time.Duration // how much clocks may differ
	Clock func() time.Time
}

// NewSettings fills in defaults and checks; least is the default of Wait.Min.
func NewSettings(core *protocol.Core, kind string, wait repo.Wait, least, skew time.Duration) (Settings, error) {
	s := Settings{Kind: kind, Wait: wait, Skew: skew, Clock: core.Clock}
	err := settings.FillAll(settings.Wait(&s.Wait, least), settings.ClockSkew(&s.Skew))
	return s, err
}
