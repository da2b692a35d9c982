package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/search"
)

// The model of the wake-up row: a producer, whose clock may be behind by
// the allowance, a dispatcher of another process, and one shard. The search walks through every
// order of their steps, with marks that are lost and copies of marks that come late.
// What is decided is decided by covers and by seenShard.due.

const (
	tickWakeUp = markStands / 2 // of the model; also the allowance, and Config.Poll
	enqueues   = 2
)

// wakeUpWorld is a state: times are ticks from 1 on, 0 is none.
type wakeUpWorld struct {
	now, row, copied int8
	behind           int8   // the producer's clock
	marked           int8   // when the producer thinks that it has marked the shard
	applied          uint32 // its marks that reached the row, by their times
	jobs             [enqueues]wakeUpJob
	phase            int8 // of the dispatcher
	heard, began     int8
	looked           int8
	busy             bool
	promised         uint8 // jobs that the row spoke for when it was read
}

type wakeUpJob struct {
	at   int8 // 0: not enqueued
	mark int8 // that stands for it, by its producer's clock
	step int8
}

// The steps of a job and of the dispatcher.
const (
	unmarked, marking, settled, found = 0, 1, 2, 3
	resting, decides, looking         = 0, 1, 2
)

// wakeUpRules are the rules, each of which a mutant leaves out.
type wakeUpRules struct {
	ticks, jobs                                                                                   int8
	markFirst, copiesWin, keepsLost, noSkew, lookedAtEnd, onePerMark, noEvery, longMark, neverDue bool
}

func (r wakeUpRules) at(tick int8) time.Time {
	if tick == 0 {
		return time.Time{}
	}
	return time.Unix(1e9, 0).Add(time.Duration(tick) * tickWakeUp)
}

// covered is covers, but for a mutant.
func (r wakeUpRules) covered(mark, now int8) bool {
	if r.longMark && now > mark && r.at(now).Sub(r.at(mark)) < 3*markStands {
		return mark != 0
	}
	return covers(r.at(mark), r.at(now))
}

// due is seenShard.due, but for mutants.
func (r wakeUpRules) due(w *wakeUpWorld) bool {
	seen := seenShard{looked: r.at(w.looked), busy: w.busy}
	poll, skew := tickWakeUp, tickWakeUp
	switch mark := r.at(w.heard); {
	case w.looked == 0:
		return true
	case r.neverDue:
		return false
	case r.onePerMark:
		return seen.busy || seen.looked.Before(mark)
	case r.noEvery:
		return seen.due(mark, r.at(w.now), 1000*poll, skew)
	case r.noSkew:
		return seen.due(mark, r.at(w.now), poll, 0)
	default:
		return seen.due(mark, r.at(w.now), poll, skew)
	}
}

// The promises.
const (
	notLookedFor = "a job waits that the wake-up row speaks for"
	waitsTooLong = "a job waits for longer than every shard is looked at"
)

func (r wakeUpRules) next(w wakeUpWorld, emit func(what string, to wakeUpWorld, wrong string)) {
	if w.now < r.ticks {
		x := w
		x.now++
		emit("a tick", x, "")
	}
	for n := range r.jobs {
		r.produce(w, int(n), emit)
	}
	if w.copied != 0 {
		x := w
		r.arrives(&x, w.copied)
		x.copied = 0
		emit("a copy of a mark arrives", x, "")
	}
	x := w
	switch w.phase {
	case resting:
		x.phase, x.heard, x.promised = decides, w.row, r.spokenFor(&w)
		emit("the row is read", x, "")
	case decides:
		x.phase, x.heard, x.promised = resting, 0, 0
		if r.due(&w) {
			x.phase, x.began, x.busy = looking, w.now, false
			for n := range x.jobs {
				if j := &x.jobs[n]; j.at != 0 && j.step != found && (j.step > unmarked || !r.markFirst) {
					*j, x.busy = wakeUpJob{at: 1, step: found}, true
				}
			}
			emit("the shard is looked at", x, "")
			return
		}
		emit("the shard is not looked at", x, r.wrong(&w))
	case looking:
		x.phase, x.looked, x.began = resting, w.began, 0
		if r.lookedAtEnd {
			x.looked = w.now
		}
		emit("the look ends", x, "")
	}
}

// produce is a step of the producer of a job.
func (r wakeUpRules) produce(w wakeUpWorld, n int, emit func(string, wakeUpWorld, string)) {
	j := w.jobs[n]
	if own := w.now - w.behind; own > 0 && j.step == unmarked && (j.at == 0) == r.markFirst {
		x := w
		if r.covered(w.marked, own) {
			x.jobs[n].mark, x.jobs[n].step = w.marked, settled
			emit("a mark is made already", x, "")
		} else {
			x.marked, x.jobs[n].mark, x.jobs[n].step = own, own, marking
			emit("a mark is on its way", x, "")
		}
	}
	switch {
	case j.at == 0 && (j.step == unmarked && !r.markFirst || r.markFirst && j.step == settled):
		x := w
		x.jobs[n].at = w.now
		emit("a job is enqueued", x, "")
	case j.step == marking:
		x := w
		r.arrives(&x, j.mark)
		x.applied |= 1 << j.mark
		x.jobs[n].step = settled
		emit("the mark arrives", x, "")
		if w.copied == 0 {
			x.copied = j.mark
			emit("the mark arrives, and was copied", x, "")
		}
		x = w
		x.jobs[n].step = settled
		if !r.keepsLost {
			x.marked = 0
		}
		emit("the mark is lost", x, "")
	}
}

// arrives applies a mark, unless a later one is there.
func (r wakeUpRules) arrives(w *wakeUpWorld, mark int8) {
	if mark > w.row || r.copiesWin {
		w.row = mark
	}
}

// spokenFor are the jobs whose mark has reached the row.
func (r wakeUpRules) spokenFor(w *wakeUpWorld) (jobs uint8) {
	for n, j := range w.jobs {
		if j.at != 0 && j.step == settled && w.applied&(1<<j.mark) != 0 && j.mark != 0 {
			jobs |= 1 << n
		}
	}
	return jobs
}

// wrong is which promise breaks if the shard is not looked at now.
func (r wakeUpRules) wrong(w *wakeUpWorld) string {
	for n, j := range w.jobs {
		if j.at == 0 || j.step == found {
			continue
		}
		if w.promised&(1<<n) != 0 {
			return notLookedFor
		}
		if w.now > j.at+everyShard+1 {
			return waitsTooLong
		}
	}
	// A mark that was lost must not stand for what its process enqueues behind it.
	a, b := w.jobs[0], w.jobs[1]
	if a.step == settled && b.step == settled && a.at > 0 && b.at > 0 && a.mark != 0 && a.mark == b.mark && w.marked == a.mark && w.applied&(1<<a.mark) == 0 {
		return notLookedFor
	}
	return ""
}

// searchWakeUp visits all states, breadth first.
func searchWakeUp(r wakeUpRules) (states int, wrong string, trace []string) {
	f := search.All([]wakeUpWorld{{now: 1}, {now: 1, behind: 1}}, func(w *wakeUpWorld, step search.Emit[wakeUpWorld, string]) { r.next(*w, step) })
	return f.States, f.Wrong, f.Trace(func(s search.Step[wakeUpWorld, string]) string { return fmt.Sprintf("tick %d: %s", s.From.now, s.Name) })
}

func TestModelOfTheWakeUpRow(t *testing.T) {
	for name, r := range map[string]wakeUpRules{"two jobs": {ticks: 7, jobs: 2}, "until every shard is looked at": {ticks: everyShard + 4, jobs: 1}} {
		states, wrong, trace := searchWakeUp(r)
		if wrong != "" {
			t.Errorf("%s: %s, after\n\t%s", name, wrong, strings.Join(trace, "\n\t"))
		}
		t.Logf("%s: %d states", name, states)
	}
	for name, m := range map[string]struct {
		wakeUpRules
		want string
	}{
		"the mark is made before the job":                     {wakeUpRules{ticks: 7, jobs: 2, markFirst: true}, notLookedFor},
		"a copy takes a later mark back":                      {wakeUpRules{ticks: 7, jobs: 2, copiesWin: true}, notLookedFor},
		"a mark that was lost stands":                         {wakeUpRules{ticks: 7, jobs: 2, keepsLost: true}, notLookedFor},
		"clocks agree":                                        {wakeUpRules{ticks: 7, jobs: 2, noSkew: true}, notLookedFor},
		"a look is from when it has ended":                    {wakeUpRules{ticks: 7, jobs: 2, lookedAtEnd: true}, notLookedFor},
		"one look for each mark":                              {wakeUpRules{ticks: 7, jobs: 2, onePerMark: true}, notLookedFor},
		"no shard is looked at without a mark":                {wakeUpRules{ticks: everyShard + 4, jobs: 1, noEvery: true}, waitsTooLong},
		"producers believe in a mark for longer than it says": {wakeUpRules{ticks: 7, jobs: 2, longMark: true}, notLookedFor},
		"marks are not looked at":                             {wakeUpRules{ticks: 7, jobs: 2, neverDue: true}, notLookedFor},
	} {
		states, wrong, trace := searchWakeUp(m.wakeUpRules)
		if wrong != m.want {
			t.Errorf("%s: found %q within %d states, want %q", name, wrong, states, m.want)
		}
		t.Logf("%s: found within %d states, %d steps: %s", name, states, len(trace), wrong)
	}
}
