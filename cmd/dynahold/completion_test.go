package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompletionErrors(t *testing.T) {
	for _, args := range []string{"completion", "completion tcsh", "completion bash extra"} {
		if code, out, errs := call(t.Context(), &fake{}, strings.Fields(args)...); code != exitUsage || out != "" || errs == "" {
			t.Errorf("%s: code %d, %q, %q", args, code, out, errs)
		}
	}
	for _, args := range [][]string{{completeWord}, {completeWord, "nothing", "--such", ""}} {
		if code, _, errs := call(t.Context(), &fake{}, args...); code != exitOK || errs != "" {
			t.Errorf("%q: code %d, %q", args, code, errs)
		}
	}
}

// shellFolder has the tool under its name, and a record.
func shellFolder(t *testing.T, shell string) string {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Fatalf("this test needs the shell: install %s (Debian: apt-get install %s)", shell, shell)
	}
	folder := t.TempDir()
	tool, err := filepath.Abs(os.Args[0])
	if err == nil {
		err = os.Symlink(tool, filepath.Join(folder, "dynahold"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "night 1.jsonl"), nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// Real shells complete commands, flags, values and files at the press of a key.
func TestCompletionInATerminal(t *testing.T) {
	for shell, begin := range map[string][]string{
		"bash": {"exec bash --noprofile --norc", "source <(dynahold completion bash)"},
		"zsh":  {"exec zsh -f", "PS1='ready> '; autoload -U compinit && compinit -u -D && source <(dynahold completion zsh)"},
	} {
		t.Run(shell, func(t *testing.T) {
			folder := shellFolder(t, shell)
			s := newScreen(t)
			s.keys("cd "+folder+"; export PATH="+folder+":$PATH; "+begin[0], "Enter")
			s.keys("clear", "Enter")
			s.keys(begin[1]+"; echo loaded", "Enter")
			s.shows("\nloaded")
			s.keys("clear", "Enter")
			s.waits()
			s.keys("dynahold loc", "Tab")
			s.shows("ready> dynahold locks")
			s.keys("tim", "Tab")
			s.shows("ready> dynahold locks timeline")
			s.keys("nig", "Tab")
			s.shows(`ready> dynahold locks timeline night\ 1.jsonl`)
			s.keys("--htm", "Tab")
			s.shows(`night\ 1.jsonl --html`)
			s.keys("nig", "Tab")
			s.shows(`--html night\ 1.jsonl`)
			s.keys("-o j", "Tab")
			s.shows(`-o json`)
			s.keys("C-u", "C-k")
			s.keys("clear", "Enter")
			s.waits()
			s.keys("dynahold locks list --output=j", "Tab")
			s.shows(`ready> dynahold locks list --output=json`)
			s.keys("C-u", "C-k")
			s.keys("clear", "Enter")
			s.waits()
			s.keys("dynahold jobs ", "Tab", "Tab")
			s.shows("requeue", "discard", "cancel")
		})
	}
}

func TestCompletionInFish(t *testing.T) {
	folder := shellFolder(t, "fish")
	for line, want := range map[string]string{
		"dynahold locks tim":            "timeline\tWho held which lock when",
		"dynahold locks list --output ": "json\t",
		"dynahold locks timeline nig":   "night 1.jsonl",
		"dynahold completion f":         "fish\t",
	} {
		cmd := exec.CommandContext(t.Context(), "fish", "--no-config", "-c", "dynahold completion fish | source; complete -C "+`"`+line+`"`) // texts of this test
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), programVariable+"=1", "HOME="+folder)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s lacks %q", line, err, out, want)
		}
	}
}
