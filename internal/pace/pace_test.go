package pace_test

import (
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/pace"
)

var line = pace.Line{Near: 1, Max: 100 * time.Millisecond, Limit: time.Second, Quarters: 3}

func TestDelay(t *testing.T) {
	begun := time.Now()
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	var p pace.Pace
	p.See(9, at(0))
	p.See(9, at(10))
	if d := p.Delay(9, at(10), line); d != 10*time.Millisecond/8 {
		t.Errorf("nothing moved: %v, want an eighth of the time", d)
	}
	p.See(7, at(30)) // two turns in 20 ms
	if d := p.Delay(7, at(30), line); p.Turn != 10*time.Millisecond || d != 40*time.Millisecond {
		t.Errorf("turn %v, delay %v: want 10 ms, and twice the last pause", p.Turn, d)
	}
	p.See(6, at(70)) // a slow one: the estimate rises by an eighth
	if want := 13750 * time.Microsecond; p.Turn != want || p.Delay(6, at(70), line) != 5*want*3/4 {
		t.Errorf("turn %v, delay %v", p.Turn, p.Delay(6, at(70), line))
	}
	if d := p.Delay(1, at(1000), line); d != line.Max {
		t.Errorf("next in line, nothing moved for long: %v", d)
	}
}

func TestDelayFromBefore(t *testing.T) {
	p := pace.Pace{Turn: 8 * time.Millisecond}
	now := time.Now()
	p.See(11, now)
	if d := p.Delay(11, now, line); d != 60*time.Millisecond {
		t.Errorf("%v, want three quarters of ten turns", d)
	}
	p = pace.Pace{Turn: time.Minute}
	p.See(11, now)
	if d := p.Delay(11, now, line); d != line.Limit {
		t.Errorf("%v, want the limit", d)
	}
}
