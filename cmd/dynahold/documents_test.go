package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/mutex"
)

// Names that would be commands to a terminal, or that turn text, are escaped in every
// document, and decode to what they are.
func TestDocumentsEscapeWhatCannotBeSeen(t *testing.T) {
	n := newNight(t)
	const evil = "e\u009b2J\u202ev\u2066i\u200fl\u061c\u2028\x7f"
	n.put("orders", map[string]types.AttributeValue{"id": word(evil), "lockedBy": word(evil), "lockTime": &types.AttributeValueMemberN{Value: "4000000000"}})
	record := filepath.Join(t.TempDir(), "night.jsonl")
	w := n.pipe("locks watch orders -o json --record " + record)
	watched := w.read("watching") + "\n" + w.read("held") + "\n" + w.read("held") + "\n"
	w.end(exitOK, "stopped")
	recorded, err := os.ReadFile(record)
	n.is(err)
	_, listed, _ := n.call("", "locks list orders -o json")
	_, told, _ := call(t.Context(), &fake{}, "locks", "timeline", record, "-o", "json")
	for what, text := range map[string]string{"watch": watched, "record": string(recorded), "list": listed, "timeline": told} {
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%s: %+q", what, text)
		}
		name, found := evil, false
		d := json.NewDecoder(strings.NewReader(text))
		for d.More() {
			var document any
			n.is(d.Decode(&document))
			found = found || has(document, name)
		}
		if !found {
			t.Errorf("%s does not decode to the name: %s", what, text)
		}
	}
}

// has reports whether a text is anywhere in a document.
func has(document any, text string) bool {
	switch d := document.(type) {
	case string:
		return d == text
	case []any:
		for _, v := range d {
			if has(v, text) {
				return true
			}
		}
	case map[string]any:
		for _, v := range d {
			if has(v, text) {
				return true
			}
		}
	}
	return false
}

// A row begins right below its first token: that is nobody's loss. What somebody has lost
// is told where the row alone tells it, or a watch has seen it.
func TestNothingIsLostThatNobodyHeld(t *testing.T) {
	n := newNight(t)
	first := n.field("locks show locks nightly-report", "token")
	n.notLost("locks show locks nightly-report", "the first hold")
	n.notLost("locks list locks", "the first hold")
	n.notLost("locks list orders", "the first hold")
	if above := n.field("locks show locks nightly-report", "none_lost_above"); above >= first {
		t.Errorf("none lost above %s, and token %s stands", above, first)
	}
	w := n.pipe("locks watch locks --every 100ms -o json")
	w.read("watching")
	if line := w.read(`"held"`, `"none_lost_above"`); strings.Contains(line, `"lost"`) {
		t.Errorf("a watch says of the first hold: %s", line)
	}
	n.is(n.report.Unlock(t.Context()))
	w.read(`"ended"`)
	locks, err := mutex.New(n.client, "locks", mutex.Config{Owner: "batch-3"})
	n.is(err)
	second, err := locks.Lock(t.Context(), "nightly-report")
	n.is(err)
	if line := w.read(`"taken"`); strings.Contains(line, `"lost"`) {
		t.Errorf("a watch says of a hold after one that was given back: %s", line)
	}
	n.notLost("locks show locks nightly-report", "a hold after one that was given back")

	n.is(locks.Break(t.Context(), "nightly-report", second.Token()))
	w.read(`"ended"`)
	third, err := locks.Lock(t.Context(), "nightly-report")
	n.is(err)
	broken := fmt.Sprint(second.Token())
	w.read(`"taken"`, `"lost":`+broken, `"none_lost_above":`+broken)
	w.end(exitOK, "stopped")
	n.is(third.Unlock(context.WithoutCancel(t.Context())))
}

// notLost demands that a document does not speak of a loss.
func (n *night) notLost(line, of string) {
	n.Helper()
	if code, out, errs := n.call("", line+" -o json"); code != exitOK || strings.Contains(out, `"lost"`) {
		n.Errorf("%s says of %s: code %d, %s%s", line, of, code, out, errs)
	}
}

// One row tells a loss where it has held a lock before its holder asked for it.
func TestOneRowTellsALoss(t *testing.T) {
	began := time.Date(2026, 11, 24, 1, 0, 0, 500, time.UTC)
	first := began.UnixMicro()
	for name, c := range map[string]struct {
		token, above int64
		since        time.Time
		lost         int64
	}{
		"the first hold":                         {first, first - 1, began.Truncate(time.Second), 0},
		"the first hold, that waited before":     {first, first - 1, began.Add(-time.Hour), 0},
		"the second one, in the same second":     {first + 1, first, began.Truncate(time.Second), 0},
		"the second one, after a loss":           {first + 1, first, began.Add(2 * time.Second), first},
		"the second one, after one without loss": {first + 1, first - 1, began.Add(2 * time.Second), 0},
		"a later one, after a loss before":       {first + 7, first + 2, began.Add(time.Hour), 0},
		"one by hand":                            {0, 0, time.Time{}, 0},
		"one that does not tell since when":      {first + 1, first, time.Time{}, 0},
	} {
		d := lockDocumentOf(mutex.Info{Token: c.token, Lost: c.above, Since: c.since}, began.Add(time.Hour))
		if d.Lost != c.lost || d.NoneLostAbove != c.above {
			t.Errorf("%s: lost %d, none above %d; want %d, %d", name, d.Lost, d.NoneLostAbove, c.lost, c.above)
		}
	}
}
