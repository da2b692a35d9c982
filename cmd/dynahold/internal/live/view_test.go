package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// pages is a model that has looked once.
func pages(t *testing.T, lines int) *model {
	t.Helper()
	p := Page{Title: "orders: many locks", Head: 2, Lines: []string{"lock", "────"}}
	for i := range lines {
		p.Lines = append(p.Lines, fmt.Sprintf("lock-%d", i))
	}
	m := &model{ctx: t.Context(), cfg: Config{Look: func(context.Context) (Page, error) { return p, nil }}}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 10})
	if text := m.View().Content; !strings.Contains(text, "looking") {
		t.Errorf("before the first look: %s", text)
	}
	m.Update(m.Init()())
	return m
}

func press(m *model, keys ...string) (quit bool) {
	for _, key := range keys {
		msg := tea.KeyPressMsg{Text: key}
		switch key {
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "up":
			msg = tea.KeyPressMsg{Code: tea.KeyUp}
		case "pgdown":
			msg = tea.KeyPressMsg{Code: tea.KeyPgDown}
		case "pgup":
			msg = tea.KeyPressMsg{Code: tea.KeyPgUp}
		case "end":
			msg = tea.KeyPressMsg{Code: tea.KeyEnd}
		case "home":
			msg = tea.KeyPressMsg{Code: tea.KeyHome}
		case "ctrl+c":
			msg = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		}
		if _, cmd := m.Update(msg); cmd != nil {
			_, quit = cmd().(tea.QuitMsg)
		}
	}
	return quit
}

// The view fits its window, and every line can be reached.
func TestMoreLinesThanTheWindowHas(t *testing.T) {
	m := pages(t, 20)
	for _, c := range []struct {
		keys        []string
		first, last int
	}{
		{nil, 0, 4},
		{[]string{"up"}, 0, 4},
		{[]string{"down", "j"}, 2, 6},
		{[]string{"pgdown"}, 7, 11},
		{[]string{"end"}, 15, 19},
		{[]string{"pgdown"}, 15, 19},
		{[]string{"pgup", "k"}, 9, 13},
		{[]string{"home"}, 0, 4},
	} {
		press(m, c.keys...)
		text := m.View().Content
		lines := strings.Split(text, "\n")
		if len(lines) != 10 || lines[2] != "lock" || lines[4] != fmt.Sprintf("lock-%d", c.first) || lines[8] != fmt.Sprintf("lock-%d", c.last) {
			t.Errorf("%v:\n%s", c.keys, text)
		}
		if want := fmt.Sprintf("lines %d to %d of 20", c.first+1, c.last+1); !strings.Contains(lines[9], want) || !strings.Contains(lines[9], "Ctrl-C ends") {
			t.Errorf("%v: %q lacks %q", c.keys, lines[9], want)
		}
	}
	press(m, "end")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 30})
	if text := m.View().Content; !strings.Contains(text, "lock-0\n") || !strings.Contains(text, "lock-19\n") || strings.Contains(text, "lines") {
		t.Errorf("in a larger window:\n%s", text)
	}
	for _, h := range []int{0, 1, 2} {
		m.Update(tea.WindowSizeMsg{Width: 1, Height: h})
		_ = m.View() // no panic
	}
}

func TestKeysThatEndTheView(t *testing.T) {
	m := pages(t, 1)
	if press(m, "x") {
		t.Error("any key ends the view")
	}
	for _, key := range []string{"q", "Q", "ctrl+c"} {
		if !press(m, key) {
			t.Errorf("%s does not end the view", key)
		}
	}
}

func TestFaults(t *testing.T) {
	m := pages(t, 1)
	m.Update(lookedMsg{page: Page{Title: "orders", Fault: "THE LATEST LOOK FAILED"}})
	if text := m.View().Content; !strings.Contains(text, "THE LATEST LOOK FAILED") {
		t.Error(text)
	}
	wrong := errors.New("no table")
	err := Run(t.Context(), Config{In: strings.NewReader(""), Out: io.Discard, Look: func(context.Context) (Page, error) { return Page{}, wrong }})
	if !errors.Is(err, wrong) {
		t.Errorf("a look that fails: %v", err)
	}
}

// The context ends the view, which returns after the look that is under way.
func TestTheContextEndsTheView(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	looking, ended := make(chan bool), false
	go func() {
		<-looking
		stop()
	}()
	err := Run(ctx, Config{In: strings.NewReader(""), Out: io.Discard, Look: func(ctx context.Context) (Page, error) {
		looking <- true
		<-ctx.Done()
		ended = true
		return Page{}, ctx.Err()
	}})
	if err != nil || !ended {
		t.Errorf("%v, the look has ended: %v", err, ended)
	}
	m := &model{ctx: ctx}
	if m.Update(lookedMsg{err: ctx.Err()}); m.fault != nil {
		t.Errorf("the end of the context is a fault: %v", m.fault)
	}
}
