package main

import "time"

// troubles are what is done to dispatchers, and what is known to have befallen
// them.
type troubles struct {
	evidence
	begun   map[string]bool // deployments whose beginning was heard of
	killed  string
	paused  event // what the paused one is at; zero if none is paused
	since   time.Time
	resumed bool
	late    int // writes of a dispatcher that had lost its job, which were refused
}

func newTroubles() troubles {
	return troubles{evidence: evidence{upset: map[string]bool{}, unlogged: map[string]bool{}}, begun: map[string]bool{}}
}

// atLeast is how long a deployment must take for a signal to reach its
// dispatcher in the middle of it.
const atLeast = 120

// disturb pauses a dispatcher past its lease while it deploys, and kills
// another: once each, at the first good moment after an event.
func (o *office) disturb(e event) {
	long := e.Kind == began && o.board.plan[e.ID].Millis >= atLeast && e.Who != o.paused.Who
	free := len(o.crew.Names) // dispatchers at work
	if o.killed != "" {
		free--
	}
	if o.paused.Who != "" {
		free--
	}
	switch {
	case !long || free < 2 || e.Who == o.killed:
	case o.pauses && o.late == 0 && o.paused.Who == "" && o.done >= len(o.plan)/8:
		o.halt(e)
	case o.kill && o.killed == "" && o.done >= len(o.plan)/4:
		o.slay(e)
	}
}

// halt pauses the dispatcher of an event. It goes on when others have taken
// over what it was at.
func (o *office) halt(e event) {
	if err := o.crew.Pause(e.Who); err != nil {
		o.board.tell("%s  cannot be paused: %v", e.Who, err)
		return
	}
	o.upset[e.Who], o.paused, o.since, o.resumed = true, e, time.Now(), false
	o.board.tell("%s  paused while it deployed %s to %s", e.Who, o.board.plan[e.ID].name(), e.Environment)
}

// slay kills the dispatcher of an event.
func (o *office) slay(e event) {
	o.upset[e.Who], o.killed = true, e.Who
	_ = o.crew.Kill(e.Who) // it may have ended by itself
	o.board.tell("%s  killed while it deployed %s to %s", e.Who, o.board.plan[e.ID].name(), e.Environment)
}

// follow notes what an event says about the one that is paused.
func (o *office) follow(e event) {
	if e.Kind == refused || e.Lost {
		o.upset[e.Who] = true
	}
	if e.Kind == began {
		o.begun[e.ID] = true
	}
	if e.Unlogged {
		o.giveUp(e.ID)
	}
	if e.Kind == refused {
		o.late++
	}
	switch {
	case o.paused.Who == "" || e.ID != o.paused.ID:
	case e.Who != o.paused.Who && e.Kind == began:
		o.wake("and does not know yet that " + e.Who + " has taken over")
	case e.Who == o.paused.Who && e.Kind != began:
		o.wake("it had ended already")
		o.paused = event{}
	}
}

// giveUp notes that a deployment goes to a later place in line. If nothing was
// heard of its beginning, the log may have no line of it either.
func (o *office) giveUp(id string) {
	if !o.begun[id] {
		o.unlogged[id] = true
	}
}

// wake lets a paused dispatcher go on.
func (o *office) wake(why string) {
	if o.paused.Who == "" || o.resumed {
		return
	}
	o.resumed = true
	if err := o.crew.Resume(o.paused.Who); err != nil {
		why = err.Error()
	}
	o.board.tell("%s  goes on, %s", o.paused.Who, why)
}

// tend lets a paused dispatcher go on of which nobody takes anything over.
func (o *office) tend() {
	if over := 3*o.lease + time.Second; o.paused.Who != "" && time.Since(o.since) > over {
		o.wake("for nothing was taken over from it")
		o.paused = event{}
	}
}
