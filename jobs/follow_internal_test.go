package jobs

import (
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/resources"
)

func TestWhetherAnEndWaits(t *testing.T) {
	for _, c := range []struct {
		want reason
		but  func(f *following)
	}{
		{waits, func(*following) {}},
		{waits, func(f *following) { f.now.Running = 1 }}, // there is room without the end, too
		{waits, func(f *following) { f.left = leastLeft }},
		{stops, func(f *following) { f.stopping = true }},
		{leaseEnds, func(f *following) { f.left = leastLeft - 1 }},
		{leaseEnds, func(f *following) { f.left = -1 }},
		{byWeight, func(f *following) { f.shared = true }},
		{othersTurn, func(f *following) { f.othersWait = true }},
		{workerFree, func(f *following) { f.free = 1 }},
		{workerFree, func(f *following) { f.free = -1 }},
		{underWay, func(f *following) { f.starting = true }},
		{oneAtATime, func(f *following) { f.now.Limit = 1 }},
		{oneAtATime, func(f *following) { f.now.Limit = 0 }}, // nobody has read it
		{noneWaits, func(f *following) { f.now.Queued = 0 }},
		{isPaused, func(f *following) { f.now.Paused = time.Now() }},
		{isAside, func(f *following) { f.aside = true }},
	} {
		f := following{now: resources.Row{Limit: 8, Running: 8, Queued: 1}, left: time.Minute}
		if c.but(&f); f.judge() != c.want {
			t.Errorf("%+v: %q, want %q", f, f.judge(), c.want)
		}
	}
}
