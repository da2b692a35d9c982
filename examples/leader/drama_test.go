package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

func TestBrokenLedgersAreFound(t *testing.T) {
	good := []entry{{1, "a"}, {1, "a"}, {2, "b"}, {5, "a"}}
	if faults := verify(good); len(faults) != 0 {
		t.Errorf("a good ledger: %v", faults)
	}
	for name, bad := range map[string][]entry{
		"late write":            {{1, "a"}, {2, "b"}, {1, "a"}},
		"one token, two owners": {{1, "a"}, {1, "b"}},
	} {
		if faults := verify(bad); len(faults) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}

// drive tells a drama of two leaders, the first of which writes late.
func drive(out *bytes.Buffer) *drama {
	d := &drama{crew: &crew.Crew[event]{}, out: out, over: true}
	for i, e := range []event{{Kind: elected, Who: "a", Token: 1}, {Kind: wrote, Who: "a", Token: 1}, {Kind: wrote, Who: "a", Token: 1},
		{Kind: elected, Who: "b", Token: 2}, {Kind: wrote, Who: "b", Token: 2},
		{Kind: refused, Who: "a", Token: 1, Error: "too late"}, {Kind: lost, Who: "a", Token: 1, Error: "gone"}} {
		e.At = time.Time{}.Add(time.Duration(i) * time.Second)
		d.hear(e)
	}
	return d
}

func TestBrokenDramasAreFound(t *testing.T) {
	var out bytes.Buffer
	ledger := []entry{{1, "a"}, {1, "a"}, {2, "b"}, {2, "b"}} // the last line was written, and its writer killed
	if err := drive(&out).conclude(ledger); err != nil {
		t.Fatalf("a good drama: %v\n%s", err, &out)
	}
	for _, want := range []string{"5.00 s  a  wrote late with token 1: too late", "1000 ms", "2 leaders one after the other, 4 lines"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	for name, bad := range map[string]struct {
		spoil  func(*drama)
		ledger []entry
	}{
		"line lost":           {func(*drama) {}, ledger[1:]},
		"side by side":        {func(*drama) {}, []entry{{1, "a"}, {2, "b"}, {1, "a"}}},
		"not elected":         {func(*drama) {}, append(ledger[:4:4], entry{3, "c"})},
		"no end":              {func(d *drama) { d.over = false }, ledger},
		"tokens not growing":  {func(d *drama) { d.terms[0], d.terms[1] = d.terms[1], d.terms[0] }, ledger},
		"no late write":       {func(d *drama) { d.late = 0 }, ledger},
		"one token for two":   {func(d *drama) { d.terms[1].token = 1 }, ledger[:2]},
		"nothing was written": {func(*drama) {}, nil},
	} {
		if name == "no late write" && !crew.CanPause {
			continue
		}
		d := drive(&out)
		bad.spoil(d)
		if err := d.conclude(bad.ledger); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}
