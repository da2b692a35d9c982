package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// The whole tool over the real harness, in virtual time, through a pipe.
func TestProgramComparesInAPipe(t *testing.T) {
	cmd, out, errs := program(t.Context(), "compare", "--processes", "2", "--workers", "3", "--items", "2", "--span", "200ms", "--rounds", "1", "-o", "json")
	if code := exitCode(t, cmd.Run()); code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	if bytes.ContainsAny(out.Bytes(), "\x1b\r") || bytes.ContainsAny(errs.Bytes(), "\x1b\r") {
		t.Error("control characters")
	}
	var doc struct {
		Workload struct {
			VirtualTime bool `json:"virtual_time"`
		}
		Modes []struct {
			Mode    string
			Changes int
			Rate    float64 `json:"changes_per_second"`
			Cost    float64 `json:"cost_usd_per_million_changes"`
			Failed  int     `json:"failed_calls"`
			Lost    int     `json:"lost_changes"`
			Extra   int     `json:"extra_changes"`
		}
		Recommendation struct{ Mode string }
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Modes) != measuredModes || doc.Recommendation.Mode == "" || !doc.Workload.VirtualTime {
		t.Errorf("%s", out)
	}
	for _, m := range doc.Modes {
		if m.Changes == 0 || m.Rate <= 0 || m.Cost <= 0 || m.Failed != 0 || m.Lost != 0 || m.Extra != 0 {
			t.Errorf("%+v", m)
		}
	}
}

func TestProgramEndsByASignal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals between processes there")
	}
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		dir := t.TempDir()
		cmd, out, errs := program(t.Context(), "compare", "--workers", "1", "--processes", "1", "--span", "200ms", "--rounds", "100", "--html", filepath.Join(dir, "report.html"))
		cmd.Stderr = nil
		progress, err := cmd.StderrPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(progress)
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "round 1 of 100: ") {
			t.Fatalf("%q, %v", line, err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if _, err := errs.ReadFrom(lines); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(t, cmd.Wait()); code != exitFailed || out.Len() > 0 || !strings.HasSuffix(errs.String(), "dynahold: interrupted\n") {
			t.Errorf("%v: code %d, %q, %q", signal, code, out, errs)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v: left behind: %v, %v", signal, left, err)
		}
	}
}

// Nobody reads the output any more: the report is written all the same, and
// nothing else is left.
func TestProgramWithAClosedPipe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals of pipes there")
	}
	help, _, errs := program(t.Context(), "compare", "--help")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	help.Stdout = w
	if err := errors.Join(r.Close(), help.Start(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, help.Wait()); code != exitFailed || errs.Len() > 0 {
		t.Errorf("help: code %d, %s", code, errs)
	}

	dir := t.TempDir()
	cmd, _, errs := program(t.Context(), "compare", "-q", "--side-effects", "--workers", "1", "--processes", "1", "--span", "100ms", "--rounds", "1", "--html", filepath.Join(dir, "report.html"))
	if r, w, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := errors.Join(r.Close(), cmd.Start(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != exitFailed || !strings.Contains(errs.String(), "broken pipe") {
		t.Errorf("code %d, %s", code, errs)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "report.html" {
		t.Errorf("%v, %v", left, err)
	}
}
