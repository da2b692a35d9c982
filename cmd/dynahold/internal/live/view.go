package live

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Page is what a look has seen. Its texts are for a terminal: no control characters.
type Page struct {
	Title string
	Lines []string // below the title; the first Head of them stay where the others scroll
	Head  int
	Fault string // what is wrong with the latest look; the lines are of the one before
}

// Config is how a view looks.
type Config struct {
	In    io.Reader // of keys; nil: the terminal of the process
	Out   io.Writer // a terminal
	Every time.Duration
	Look  func(context.Context) (Page, error) // an error ends the view
}

// Run shows pages until somebody types q or Ctrl-C, ctx ends, or a look fails. Only the
// last is an error.
func Run(ctx context.Context, cfg Config) error {
	looks, stop := context.WithCancel(ctx)
	m := &model{cfg: cfg, ctx: looks}
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithOutput(cfg.Out), tea.WithoutSignalHandler()}
	if cfg.In != nil {
		options = append(options, tea.WithInput(cfg.In))
	}
	_, err := tea.NewProgram(m, options...).Run()
	stop()
	m.one.Lock() // a look that is under way ends first
	defer m.one.Unlock()
	switch {
	case m.fault != nil:
		return m.fault
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// model is the state of the view.
type model struct {
	cfg   Config
	ctx   context.Context // of looks
	page  Page
	seen  bool // a look has returned
	fault error
	top   int // first line that is shown, of those that scroll
	h     int // lines of the window

	one sync.Mutex // held by a look; none begins after ctx has ended
}

type (
	lookedMsg struct {
		page Page
		err  error
	}
	dueMsg struct{}
)

// Init makes the first look.
func (m *model) Init() tea.Cmd { return m.look() }

// look makes one look beside the view, which can be left meanwhile.
func (m *model) look() tea.Cmd {
	return func() tea.Msg {
		m.one.Lock()
		defer m.one.Unlock()
		if m.ctx.Err() != nil {
			return nil
		}
		page, err := m.cfg.Look(m.ctx)
		return lookedMsg{page, err}
	}
}

// Update takes what has happened.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.h = msg.Height
		m.scroll(0)
	case lookedMsg:
		if msg.err != nil {
			if m.ctx.Err() == nil { // else it is that the view has ended
				m.fault = msg.err
			}
			return m, tea.Quit
		}
		m.page, m.seen = msg.page, true
		m.scroll(0)
		return m, tea.Tick(m.cfg.Every, func(time.Time) tea.Msg { return dueMsg{} })
	case dueMsg:
		return m, m.look()
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

func (m *model) key(key string) tea.Cmd {
	switch key {
	case "ctrl+c", "q", "Q", "esc":
		return tea.Quit
	case "up", "k":
		m.scroll(-1)
	case "down", "j":
		m.scroll(1)
	case "pgup", "b":
		m.scroll(-m.room())
	case "pgdown", "space", "f":
		m.scroll(m.room())
	case "home", "g":
		m.scroll(-len(m.page.Lines))
	case "end", "G":
		m.scroll(len(m.page.Lines))
	}
	return nil
}

// What stands around the lines: title, an empty line, and the keys.
const frame = 3

// room is how many lines that scroll have room.
func (m *model) room() int { return max(1, m.h-frame-m.page.Head) }

// scroll moves the lines, as far as there are some.
func (m *model) scroll(by int) {
	m.top = max(0, min(m.top+by, len(m.page.Lines)-m.page.Head-m.room()))
}

// View draws the page; Bubble Tea cuts off what does not fit.
func (m *model) View() tea.View {
	text := m.page.Title
	if !m.seen {
		text = "looking ..."
	}
	if m.page.Fault != "" {
		text += " " + m.page.Fault
	}
	lines := []string{text, ""}
	head := min(m.page.Head, len(m.page.Lines))
	lines = append(lines, m.page.Lines[:head]...)
	rest := m.page.Lines[head:]
	end := min(len(rest), m.top+m.room())
	lines = append(lines, rest[min(m.top, end):end]...)
	keys := "q or Ctrl-C ends"
	if len(rest) > m.room() {
		keys += fmt.Sprintf("; lines %d to %d of %d: arrows, Page Up, Page Down, Home, End", m.top+1, end, len(rest))
	}
	v := tea.NewView(strings.Join(append(lines, keys), "\n"))
	v.AltScreen = true
	return v
}
