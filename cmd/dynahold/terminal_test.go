package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// screen is a real terminal with a shell in it, of a tmux server of its own.
type screen struct {
	*testing.T
	socket string
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("this test needs a terminal: install tmux (Debian: apt-get install tmux)")
	}
	s := &screen{t, filepath.Join(t.TempDir(), "tmux")}
	s.tmux("-f", os.DevNull, "new-session", "-d", "-x", "150", "-y", "40", "env", "PS1=ready> ", programVariable+"=1", "/bin/sh")
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "tmux", "-S", s.socket, "kill-server").Run() })
	s.shows("ready>")
	return s
}

func (s *screen) tmux(args ...string) string {
	s.Helper()
	out, err := exec.CommandContext(s.Context(), "tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput() // arguments of this test
	if err != nil {
		s.Fatalf("tmux %v: %v, %s", args, err, out)
	}
	return string(out)
}

// keys types keys; Enter and C-c are names of keys.
func (s *screen) keys(keys ...string) {
	s.Helper()
	s.tmux(append([]string{"send-keys", "--"}, keys...)...)
}

// shows waits until the screen has all words.
func (s *screen) shows(words ...string) {
	s.Helper()
	s.until(func(text string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	}, words...)
}

// waits waits until the screen has nothing but the prompt. What is typed while a
// shell still takes a line off the screen can come out in its place.
func (s *screen) waits() {
	s.Helper()
	s.until(func(text string) bool { return strings.TrimSpace(text) == "ready>" }, "nothing but ready>")
}

func (s *screen) until(good func(text string) bool, want ...string) {
	s.Helper()
	late := time.After(time.Minute)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		text := s.tmux("capture-pane", "-p")
		if good(text) {
			return
		}
		select {
		case <-look.C: // a terminal tells nobody that it has changed
		case <-late:
			s.Fatalf("the screen does not show %q:\n%s", want, text)
		}
	}
}

// In a real terminal the view is live and leaves the screen as it was, and what ends
// something by force asks whoever sits there.
func TestInATerminal(t *testing.T) {
	n := newNight(t)
	token := n.field("locks show locks nightly-report", "token")
	s := newScreen(t)
	s.keys("echo before the view", "Enter")
	s.shows("before the view")
	tool := os.Args[0] + " "
	ends := " --endpoint " + n.endpoint
	watch := tool + "locks watch locks --every 100ms" + ends + "; echo code $?"
	s.keys(watch, "Enter")
	s.shows("locks: 1 locks", "nightly-report", "batch-2", token, "Ctrl-C ends")
	s.tmux("resize-window", "-x", "40", "-y", "8")
	s.shows("locks: 1 locks", "nightly-report", "Ctrl-C ends")
	if text := s.tmux("capture-pane", "-p"); strings.Contains(text, token) || strings.Count(text, "nightly-report") != 1 || strings.Count(text, "Ctrl-C ends") != 1 {
		t.Errorf("a line that does not fit is broken:\n%s", text)
	}
	s.tmux("resize-window", "-x", "150", "-y", "40")
	s.shows("locks: 1 locks", "nightly-report", token, "Ctrl-C ends")
	if strings.Contains(s.tmux("capture-pane", "-p"), "before the view") {
		t.Error("the view is no screen of its own")
	}
	n.is(n.report.Unlock(t.Context()))
	s.shows("locks: 0 locks")
	s.keys("C-c")
	s.shows("before the view", "code 0")
	if text := s.tmux("capture-pane", "-p"); strings.Contains(text, "Ctrl-C ends") {
		t.Errorf("the view stays on the screen:\n%s", text)
	}
	if cursor := s.tmux("display-message", "-p", "#{cursor_flag}"); strings.TrimSpace(cursor) != "1" {
		t.Error("the cursor stays hidden")
	}
	s.keys("clear", "Enter")
	s.keys(watch, "Enter")
	s.shows("locks: 0 locks")
	s.keys("q")
	s.shows("code 0")

	s.keys("clear", "Enter")
	line := tool + "locks break orders 1001 --token " + n.field("locks show orders 1001", "token") + ends + "; echo code $?"
	s.keys(line, "Enter")
	s.shows("till-1", "Break it? [y/N]")
	s.keys("n", "Enter")
	s.shows("not agreed to: nothing was changed", "code 1")
	s.keys("clear", "Enter")
	s.keys(line, "Enter")
	s.shows("Break it? [y/N]")
	s.keys("y", "Enter")
	s.shows("broken:", "code 0")
	n.says("locks list orders", exitOK, "nobody holds a lock")
}
