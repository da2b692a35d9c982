package main

import (
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// The tool's document has every command and every flag.
func TestTheReadmeHasEveryCommandAndFlag(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	command, flag := regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z-]+)?)  `), regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	_, help, _ := call(t.Context(), &fake{}, "--help")
	commands := command.FindAllStringSubmatch(help, -1)
	if len(commands) < 20 {
		t.Fatalf("%d commands in the help:\n%s", len(commands), help)
	}
	for _, c := range commands {
		if !strings.Contains(string(readme), "`"+c[1]) && !strings.Contains(string(readme), "dynahold "+c[1]) {
			t.Errorf("README.md does not have %s", c[1])
		}
		_, help, _ := call(t.Context(), &fake{}, append(strings.Fields(c[1]), "--help")...)
		for _, f := range flag.FindAllString(help, -1) {
			if short := f == "--help" || f == "--output" || f == "--quiet"; !short && !regexp.MustCompile(f+`\b`).Match(readme) {
				t.Errorf("README.md does not have the flag %s of %s", f, c[1])
			}
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args string
		says string
	}{
		{"", `expected one of "compare",`},
		{"bogus", "unexpected argument bogus"},
		{"compare extra", "unexpected argument extra"},
		{"compare --bogus", "unknown flag --bogus"},
		{"compare --workers -1", "--workers must be from 1 to 1000, not -1"},
		{"compare --workers 10000", "--workers must be from 1 to 1000"},
		{"compare --workers 0", "--workers must be from 1"},
		{"compare --workers x", "--workers"},
		{"compare --processes=-3", "--processes must be from 1"},
		{"compare --processes 251", "--processes must be from 1 to 250, not 251"},
		{"compare --processes 200 --workers 200", "--processes times --workers is 40000"},
		{"compare --items 0", "--items must be from 1"},
		{"compare --items 100000 --size 100KB", "more than 1 GB"},
		{"compare --items 1 --zipf 2", "--zipf needs more --items"},
		{"compare --latency 30m", "--latency must be from 1µs to 1m"},
		{"compare --time-limit 0s", "--time-limit must be from 1s"},
		{"compare --items 9 --zipf 0.5", "--zipf must be above 1"},
		{"compare --items 9 --zipf 1", "--zipf must be above 1"},
		{"compare --items 9 --zipf -2", "--zipf must be above 1"},
		{"compare --items 9 --zipf NaN", "--zipf must be above 1"},
		{"compare --size 401KB", "--size can be 390KB, not 401KB"},
		{"compare --size 1MB", `"1MB" is no size`},
		{"compare --size -1", `"-1" is no size`},
		{"compare --size 0", "--size must be at least 1B"},
		{"compare --size 99999999999999999999KB", "more than an item"},
		{"compare --work 5", "missing unit"},
		{"compare --work -5ms", "--work must be from 0s to 1h"},
		{"compare --pause -5ms", "--pause must be"},
		{"compare --span 1ms", "--span must be from 100ms"},
		{"compare --latency 0s", "--latency must be"},
		{"compare --latency 20ms --p99 10ms", "--p99 (10ms) is below the median --latency (20ms)"},
		{"compare --rounds 0", "--rounds must be"},
		{"compare --seed -1", "--seed"},
		{"compare --price-write -1", "--price-write must be a price"},
		{"compare --price-read NaN", "--price-read must be a price"},
		{"compare --price-read 1e308", "--price-read must be a price"},
		{"compare -o xml", `--output must be one of "table","json"`},
		{"compare --output=", "--output must be one of"},
		{"compare --html --quiet", "--html needs a file"},
		{"compare --html=", "--html needs a file"},
		{"compare --html", "--html"},
		{"compare --html /no/such/folder/r.html", "there is no folder"},
		{"compare --html /", "is a folder"},
		{"jobs discard jobs orders --all --yes --error=", "--error has no value"},
		{"jobs requeue --endpoint= jobs orders 1", "--endpoint has no value"},
		{"locks list locks --region=", "--region has no value"},
		{"locks list locks --profile=", "--profile has no value"},
		{"unique repair orders --of mail --yes --partition-prefix=", "--partition-prefix has no value"},
		{"commands list prints s one --mail=", "--mail has no value"},
	} {
		f := &fake{}
		code, out, errs := call(t.Context(), f, strings.Fields(c.args)...)
		if code != exitUsage || out != "" || !strings.HasPrefix(errs, "dynahold: ") || !strings.Contains(errs, c.says) {
			t.Errorf("%q: code %d, %q, %q; want %q", c.args, code, out, errs, c.says)
		}
		if len(f.asked) > 0 {
			t.Errorf("%q was measured", c.args)
		}
	}
}

func TestHelp(t *testing.T) {
	for args, wants := range map[string][]string{
		"--help":         {"compare", "version", "locks", "jobs"},
		"compare --help": {"Examples:", "--side-effects", "--workers=8", "Exit codes:", "Workload\n", "default: 0.625", "--work=DURATION", "default: 0s"},
		"compare -h":     {"Examples:"},
		"version --help": {"Print the version"},
	} {
		code, out, errs := call(t.Context(), &fake{}, strings.Fields(args)...)
		if code != exitOK || errs != "" {
			t.Errorf("%q: code %d, %q", args, code, errs)
		}
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%q does not say %q:\n%s", args, want, out)
			}
		}
		for line := range strings.Lines(out) {
			if len(line) > plainWidth+1 {
				t.Errorf("%q: a line of %d: %s", args, len(line), line)
			}
		}
	}
}

// The examples of the help are what they say: command lines that work.
func TestExamplesOfTheHelp(t *testing.T) {
	t.Chdir(t.TempDir())
	n := 0
	for line := range strings.Lines(compareCommand{}.Help()) {
		args, is := strings.CutPrefix(strings.TrimSpace(line), "dynahold ")
		if !is {
			continue
		}
		n++
		args, _, _ = strings.Cut(args, " |")
		if code, out, errs := call(t.Context(), &fake{}, strings.Fields(args)...); code != exitOK || out == "" {
			t.Errorf("%s: code %d, %s", args, code, errs)
		}
	}
	if n < 2 {
		t.Errorf("%d examples", n)
	}
}

func TestVersion(t *testing.T) {
	code, out, errs := call(t.Context(), &fake{}, "version")
	if code != exitOK || errs != "" || !strings.HasPrefix(out, "dynahold ") || strings.Count(out, "\n") != 1 {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3":                             {Main: debug.Module{Version: "v1.2.3"}},
		"(from source)":                      {Main: debug.Module{Version: "(devel)"}},
		"(commit 0123456789ab)":              {Settings: []debug.BuildSetting{revision}},
		"(commit 0123456789ab with changes)": {Settings: []debug.BuildSetting{revision, modified}},
	} {
		if got := versionOf(info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
