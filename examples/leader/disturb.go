package main

import (
	"time"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// disturb does what is due after an event: the leader is paused until another
// leads, and goes on then, as often as it takes for a late write; after that
// the leader is killed, and the next one ends the demonstration.
func (d *drama) disturb(e event) {
	if d.paused != nil && d.resumed && e.Who == d.paused.who && e.Kind == lost {
		d.paused = nil
	}
	if len(d.terms) == 0 || d.over {
		return
	}
	now := d.terms[len(d.terms)-1]
	if e.Kind != wrote || e.Token != now.token || now.lines < linesEach {
		return
	}
	switch {
	case crew.CanPause && d.late == 0 && d.paused == nil:
		d.halt(now)
	case d.paused != nil && d.paused != now && !d.resumed:
		d.wake()
	case d.paused != nil: // it has not found out yet
	case d.killed == "":
		d.slay(now)
	case now.who != d.killed:
		d.over, now.end = true, "end of the demonstration"
		d.stop()
	}
}

// halt pauses the leader.
func (d *drama) halt(now *term) {
	d.paused, d.resumed, now.end = now, false, "paused past its lease"
	d.say(now.who, time.Now(), "is paused (SIGSTOP)")
	d.report(d.crew.Pause(now.who))
}

// wake lets the paused leader go on.
func (d *drama) wake() {
	d.resumed = true
	d.say(d.paused.who, time.Now(), "goes on (SIGCONT), and does not know yet")
	d.report(d.crew.Resume(d.paused.who))
}

// slay kills the leader.
func (d *drama) slay(now *term) {
	d.killed, now.end = now.who, "killed"
	d.say(now.who, time.Now(), "is killed (SIGKILL)")
	d.report(d.crew.Kill(now.who))
}
