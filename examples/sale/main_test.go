package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// TestMain makes the test binary a seller when a crew starts it.
func TestMain(m *testing.M) {
	if !crew.IsMember() {
		os.Exit(m.Run())
	}
	crew.Main(run)
}

func TestNothingIsLostOrSoldTwice(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-processes", "4", "-customers", "120", "-pieces", "80", "-kills", "8"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
	}
	for _, want := range []string{"120 customers at 4 processes, 8 kills: 80 pieces sold", "no customer has two (80)", "every customer was told"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-processes", "0"}, {"-customers", "1"}, {"-pieces", "0"}, {"-kills", "-1"}, {"-nonsense"}, {"more"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}

// A seller that ends by itself, and has not served its customers, ends the run.
func TestASellerThatFailsEndsTheRun(t *testing.T) {
	d := &stage{settings: settings{processes: 1, customers: -1}}
	if err := d.run(t.Context()); err == nil || !strings.Contains(err.Error(), "-customers") {
		t.Errorf("%v", err)
	}
}

// The audit must see each thing that the sale is there to prevent.
func TestTheAuditFindsWhatIsWrong(t *testing.T) {
	s := settings{customers: 3}
	good := edition{Pieces: 2, Owners: []string{"ann", "bob"}}
	told := []verdict{{Customer: "ann", Piece: 1}, {Customer: "ann", Before: true}, {Customer: "bob", Before: true}, {Customer: "cid", SoldOut: true}}
	faults := func(e edition, told []verdict) (all string) {
		for _, c := range audit(s, e, told) {
			all += strings.Join(c.Faults, "\n") + "\n"
		}
		return all
	}
	if found := strings.TrimSpace(faults(good, told)); found != "" {
		t.Fatal(found)
	}
	for says, spoil := range map[string]func(e *edition, told *[]verdict){
		"ann has the pieces 1 and 2":                 func(e *edition, _ *[]verdict) { e.Owners[1] = "ann" },
		"3 pieces are sold of 2":                     func(e *edition, _ *[]verdict) { e.Owners = append(e.Owners, "dan") },
		"ann was told to have piece 1, and has 2":    func(e *edition, _ *[]verdict) { slices.Reverse(e.Owners) },
		"bob was told to have a piece, and has none": func(e *edition, _ *[]verdict) { e.Owners[1] = "dan" },
		"cid was told that all are sold, and has 2":  func(e *edition, _ *[]verdict) { e.Owners[1] = "cid" },
		"2 customers were told, of 3":                func(_ *edition, told *[]verdict) { *told = (*told)[:3] },
		"dan has piece 2, and was not told":          func(e *edition, _ *[]verdict) { e.Owners[1] = "dan" },
		"1 pieces of 2 are sold, to 3 customers":     func(e *edition, _ *[]verdict) { e.Owners = e.Owners[:1] },
	} {
		e, all := good, slices.Clone(told)
		e.Owners = slices.Clone(good.Owners)
		spoil(&e, &all)
		if found := faults(e, all); !strings.Contains(found, says) {
			t.Errorf("%q is not found, but\n%s", says, found)
		}
	}
}
