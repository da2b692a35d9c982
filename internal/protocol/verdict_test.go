package protocol

import (
	"testing"

	"github.com/dynahold/dynahold/internal/stored"
)

// The verdicts one by one, each for the image that decides it. The models search
// what can follow from one another; these rows say what each means.

var me = Holder{ID: "me", Token: 10, Seen: 12}

// image is an item that lives on under another hold, after me has ended its own.
func image(change func(*stored.Record)) stored.Record {
	l := stored.Record{By: "other", Held: 12, Token: 13, Stolen: 3}
	change(&l)
	return l
}

func TestVerdictOfACommit(t *testing.T) {
	for name, c := range map[string]struct {
		image         stored.Record
		gone          bool
		clean, repeat Verdict // of a first attempt, and of a later one
	}{
		"somebody else holds it, and took it from nobody": {image(func(*stored.Record) {}), false, Committed, Committed},
		"nobody holds it":                     {image(func(l *stored.Record) { l.By, l.Held = "", 0 }), false, Committed, Committed},
		"it is gone":                          {stored.Record{}, true, Lost, Undecided},
		"our hold is expired":                 {image(func(l *stored.Record) { l.By, l.Held = "me", 10 }), false, Expired, Undecided},
		"our id under another hold":           {image(func(l *stored.Record) { l.By = "me" }), false, Committed, Committed},
		"it was taken from us":                {image(func(l *stored.Record) { l.Stolen = 10 }), false, Lost, Lost},
		"somebody locks by hand over us":      {image(func(l *stored.Record) { l.Held = 10 }), false, Lost, Lost},
		"an item made anew, tokens below":     {image(func(l *stored.Record) { l.Token = 9 }), false, Lost, Undecided},
		"an item made anew, the same token":   {image(func(l *stored.Record) { l.Token = 10 }), false, Lost, Undecided},
		"an item made anew, tokens far above": {image(func(l *stored.Record) { l.Token = 12 + lifeSpan + 1 }), false, Lost, Undecided},
		"as many tokens as were given out":    {image(func(l *stored.Record) { l.Token = 12 + lifeSpan }), false, Committed, Committed},
		"no note of who was robbed":           {image(func(l *stored.Record) { l.Stolen = -1 }), false, Lost, Undecided},
		"somebody after us was robbed":        {image(func(l *stored.Record) { l.Stolen = 11 }), false, Lost, Undecided},
	} {
		if got := JudgeCommit(c.image, me, !c.gone, true); got != c.clean {
			t.Errorf("%s: %v, want %v", name, got, c.clean)
		}
		if got := JudgeCommit(c.image, me, !c.gone, false); got != c.repeat {
			t.Errorf("%s, after an attempt without an answer: %v, want %v", name, got, c.repeat)
		}
	}
}

func TestVerdictOfADelete(t *testing.T) {
	mine := image(func(l *stored.Record) { l.By, l.Held = "me", 10 })
	robbed := image(func(l *stored.Record) { l.Stolen = 10 })
	anew := image(func(l *stored.Record) { l.Token = 9 })
	for _, c := range []struct {
		name                 string
		image                stored.Record
		exists, clean, valid bool
		want                 Verdict
	}{
		{"our hold is expired", mine, true, true, false, Expired},
		{"our hold is expired, an attempt may land", mine, true, false, false, Undecided},
		{"it was taken from us", robbed, true, false, true, Lost},
		{"it is gone within the deadline", stored.Record{}, false, true, true, Committed},
		{"it was made anew within the deadline", anew, true, false, true, Committed},
		{"it is gone after the deadline", stored.Record{}, false, false, false, Undecided},
		{"it is gone after the deadline, one attempt", stored.Record{}, false, true, false, Lost},
		{"it was made anew after the deadline", anew, true, false, false, Undecided},
		{"it lives on under another hold", image(func(*stored.Record) {}), true, false, true, Undecided},
	} {
		if got := JudgeDelete(c.image, me, c.exists, c.clean, c.valid); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
