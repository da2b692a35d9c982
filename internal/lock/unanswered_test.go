package lock

import (
	"fmt"
	"testing"
	"time"
)

// An hour of waiting may lose any number of answers: what is remembered of them
// is bounded, in number and in age.
func TestLostTriesAreBounded(t *testing.T) {
	var lost unansweredTries
	began := time.Now()
	at := func(i int) time.Time { return began.Add(time.Duration(i) * time.Second) }
	for i := range 3 * maxLost {
		lost = lost.and(fmt.Sprint(i), at(i), time.Hour)
	}
	if newest := lost.newest(); len(lost) != maxLost || newest[0] != fmt.Sprint(3*maxLost-1) || newest[maxLost-1] != fmt.Sprint(2*maxLost) {
		t.Errorf("%d remembered: %v", len(lost), newest)
	}
	lost = lost.and("last", at(3*maxLost), 10*time.Second)
	if len(lost) != 11 { // those of the last ten seconds, and it
		t.Errorf("%d remembered: %v", len(lost), lost.newest())
	}
}

// Until when a try can do harm: who trusts clocks takes over what has landed
// beyond its lease; who does not, and a hold without an end, is in the way
// whenever it lands.
func TestHowLongALostTryIsRemembered(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want time.Duration
	}{
		{Config{Lease: 30 * time.Second, Skew: time.Second}, 31 * time.Second},
		{Config{Lease: 30 * time.Second, Skew: time.Second, Clockless: true}, maxFlight},
		{Config{Skew: time.Second}, maxFlight},
	} {
		if got := c.cfg.landing(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.cfg, got, c.want)
		}
	}
}
